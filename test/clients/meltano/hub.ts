import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What Meltano's Hub says of a loader, as far as Meltano acts on it. */
type Definition = {
  readonly name: string;
  readonly namespace: string;
  readonly variant: string;
  readonly executable?: string;
  readonly settings: readonly Readonly<Record<string, unknown>>[];
};

const LOADERS: readonly Definition[] = [
  {
    name: "target-csv",
    namespace: "target_csv",
    variant: "meltanolabs",
    executable: "target-csv",
    settings: [{ name: "output_path" }, { name: "file_naming_scheme", value: "{stream_name}.csv" }],
  },
  {
    name: "target-postgres",
    namespace: "target_postgres",
    variant: "meltanolabs",
    executable: "target-postgres",
    settings: [
      { name: "host" },
      { name: "port", kind: "integer", value: 5432 },
      { name: "user" },
      { name: "password", kind: "password", sensitive: true },
      { name: "database" },
      { name: "default_target_schema", value: "$MELTANO_EXTRACT__LOAD_SCHEMA" },
    ],
  },
];

export type Hub = {
  /** For MELTANO_HUB_API_ROOT. Its loaders have no package: Meltano runs what is on the PATH, and installs nothing. */
  readonly url: string;
  close(): Promise<void>;
};

/** Serves the definitions of the loaders that docs/meltano.md adds, in place of Meltano's Hub on the internet. */
export async function startHub(): Promise<Hub> {
  const server = createServer((request, response) => answer(origin(), request.url ?? "", response));
  const origin = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: origin(),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function answer(origin: string, path: string, response: ServerResponse): void {
  const name = path.replace("/plugins/loaders/", "");
  const value = name === "index" ? indexAt(origin) : LOADERS.find((loader) => refOf(loader) === name);
  response.writeHead(value === undefined ? 404 : 200, { "content-type": "application/json" });
  response.end(JSON.stringify(value ?? {}));
}

const refOf = ({ name, variant }: Definition): string => `${name}--${variant}`;

function indexAt(root: string): object {
  const entries = LOADERS.map((loader) => {
    const { name, variant } = loader;
    const ref = `${root}/plugins/loaders/${refOf(loader)}`;
    return [
      name,
      { name, logo_url: null, default_variant: variant, variants: { [variant]: { name: variant, ref } } },
    ] as const;
  });
  return Object.fromEntries(entries);
}
