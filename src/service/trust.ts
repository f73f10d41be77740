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

/**
 * The CAs of Node, of the machine, and of the files that the environment names: to name any replaces Node's own choice.
 * `problems`: the files that it names and that are of no use.
 */
export function trusted(environment: Environment) {
  const named = NAMED.flatMap((variable) => {
    const file = environment[variable] ?? "";
    return file === "" ? [] : [{ variable, file, ...read(file) }];
  });
  const system = SYSTEM_BUNDLES.map(read).find(({ problem }) => problem === undefined);
  return {
    certificates: [...rootCertificates, ...named.map(({ text }) => text), system?.text ?? ""],
    problems: named.flatMap(({ variable, file, problem }) =>
      problem === undefined ? [] : [`${variable} names "${file}", which cannot be used: ${problem}`],
    ),
  };
}

/** The certificates of a file. */
function read(file: string): { readonly text: string; readonly problem?: string } {
  try {
    const text = readFileSync(file, "utf8");
    return /^-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----/m.test(text)
      ? { text }
      : { text: "", problem: "it holds no certificate in PEM" };
  } catch (error) {
    return { text: "", problem: reasonOf(error) };
  }
}
