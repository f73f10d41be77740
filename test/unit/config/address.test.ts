import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
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
