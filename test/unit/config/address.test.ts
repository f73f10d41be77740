import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  addressProblem,
  isLoopback,
  keyDigest,
  parseAddress,
  serviceDigest,
  serviceUrl,
} from "../../../src/config/address.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 16);

it.each([
  ["https://service.example/", "/people", "https://service.example/people"],
  ["https://service.example/a//", "people", "https://service.example/a/people"],
  ["https://service.example/a/api/v1/public/", "/people", "https://service.example/a/people"],
  ["https://service.example/a/api/v1/external", "/people", "https://service.example/a/people"],
  ["https://service.example", "/a?b=c", "https://service.example/a%3Fb=c"],
])("%s with the path %s is asked at %s", (root, path, url) => {
  expect(serviceUrl(parseAddress(root), path).href).toBe(url);
});

describe("the digest by which states and receipts are found again", () => {
  it("is one for all spellings of a service, and another for another path", () => {
    for (const path of ["/crm", "/crm/", "/crm//", "/crm/api/v1/public/"])
      expect(serviceDigest(parseAddress(`https://SERVICE.example:443${path}`))).toBe(
        sha256("https://service.example/crm"),
      );
    for (const path of ["", "/crm2", "/a/crm", "/crm/x"])
      expect(serviceDigest(parseAddress(`https://service.example${path}`))).toBe(
        sha256(`https://service.example${path}`),
      );
  });

  it.each([
    ["svc_1_a", "svc_1"],
    ["svc", "svc"],
    ["_a", "_a"],
  ])("of the key %j is the digest of %j, without the secret part", (key, text) => {
    expect(keyDigest(key)).toBe(sha256(text));
  });
});

it.each([
  [true, ["localhost", "localhost.", "a.localhost", "[::1]", "127.0.0.1", "127.255.12.3"]],
  [false, ["127.0.0.1.2", "1127.0.0.1", "127.0.0.1.example", "alocalhost", "localhost.a", "[::2]", ""]],
])("is this machine: %j for %j", (isOurs, names) => {
  expect(names.map(isLoopback)).toEqual(names.map(() => isOurs));
});

it.each<[problem: string | undefined, addresses: readonly string[]]>([
  [undefined, ["https://host", "HTTPS://HOST:8443/a/b/", "http://localhost:1", "http://127.0.0.1/x"]],
  [
    "must be https://host or https://host/path, without",
    [
      ...["host", "", "https://", "https://host/a b", "https://host\n", "ftp://host", "host:443"],
      ...["ftp://user@host", "https://user@host", "https://:word@host", "http://u:p@host/?a"],
      ...["https://host?", "https://host/?a=b", "https://host#"],
    ],
  ],
  ["because http:// sends the key unencrypted", ["http://host", "http://localhost.example"]],
])("the problem %j is that of %j", (problem, addresses) => {
  for (const text of addresses) {
    const found = addressProblem(text, false);
    if (problem === undefined) expect(found, text).toBeUndefined();
    else expect(found, text).toContain(problem);
    expect(addressProblem(text, true), text).toBe(problem?.includes("unencrypted") ? undefined : found);
  }
});
