import { readdirSync } from "node:fs";
import { chown } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { outputOf } from "../../support/run.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { INSTALLED } from "./postgres-install.ts";

/** PostgreSQL refuses to run as root, who lends it this user. */
const USER = "postgres";

export type Postgres = {
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** Rows of a query that selects one JSON value each. */
  query<Row>(sql: string): Promise<Row[]>;
  stop(): Promise<void>;
};

/** Starts a throwaway cluster on a free port of this machine's loopback address. */
export async function startPostgres(): Promise<Postgres> {
  const [version = ""] = readdirSync(INSTALLED).sort().reverse();
  const bin = join(INSTALLED, version, "bin");
  const folder = await tempDir();
  const asRoot = process.getuid?.() === 0;
  if (asRoot) await chown(folder, ...(await idsOf(USER)));
  const as = asRoot ? ["runuser", "-u", USER, "--"] : [];
  const call = async (name: string, ...args: string[]): Promise<string> => {
    const [command = "", ...rest] = [...as, join(bin, name), ...args];
    return await outputOf(command, rest, { cwd: folder });
  };
  const cluster = join(folder, "cluster");
  const port = await freePort();
  await call("initdb", "-D", cluster, "-U", USER, "--auth=trust", "--encoding=UTF8", "--no-sync");
  const options = `-p ${port} -k ${folder} -c listen_addresses=127.0.0.1 -c fsync=off`;
  await call("pg_ctl", "-D", cluster, "-w", "-l", join(folder, "log"), "-o", options, "start");
  return {
    ...{ port, user: USER, password: "unused", database: USER },
    async query<Row>(sql: string): Promise<Row[]> {
      const text = await call("psql", "-h", "127.0.0.1", "-p", `${port}`, "-U", USER, "-At", "-c", sql);
      const lines = text.split("\n").filter((line) => line !== "");
      return lines.map((line): Row => JSON.parse(line));
    },
    async stop() {
      await call("pg_ctl", "-D", cluster, "-m", "immediate", "stop");
    },
  };
}

async function idsOf(user: string): Promise<[number, number]> {
  const [uid, gid] = await Promise.all(["-u", "-g"].map((flag) => outputOf("id", [flag, user])));
  return [Number(uid), Number(gid)];
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}
