import { readFileSync } from "node:fs";
import { rootCertificates } from "node:tls";
import type { Environment } from "../config/environment.ts";
import { reasonOf } from "../output/files/reason.ts";

/** The files of the certificates that the machine trusts, by distribution. */
const SYSTEM_BUNDLES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];
const NAMED = ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"];

/** The CAs of Node, of the machine, and of files in the environment. Node uses only this list, so it contains Node's CAs. */
export function trusted(environment: Environment): string[] {
  return [...rootCertificates, ...named(environment).map(({ text }) => text), systemText()];
}

/** Describes the files in the environment that cannot be used. */
export const caProblems = (environment: Environment): readonly string[] =>
  named(environment).flatMap(({ variable, file, problem }) =>
    problem === undefined ? [] : [`${variable} names "${file}", which cannot be used: ${problem}`],
  );

const named = (environment: Environment) =>
  NAMED.flatMap((variable) => {
    const file = environment[variable] ?? "";
    return file === "" ? [] : [{ variable, file, ...read(file) }];
  });

/** The text of the first usable bundle. All bundles of one machine contain equal certificates. */
const systemText = (): string => SYSTEM_BUNDLES.map((file) => read(file).text).find((text) => text) ?? "";

/** The certificates of a file. */
function read(file: string): { readonly text: string; readonly problem?: string } {
  try {
    const text = readFileSync(file, "utf8");
    return /^-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----/m.test(text)
      ? { text }
      : { text: "", problem: "it contains no certificate in PEM" };
  } catch (error) {
    return { text: "", problem: reasonOf(error) };
  }
}
