import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import {
  addressProblem,
  isLoopback,
  keyDigest,
  parseAddress,
  serviceDigest,
  serviceUrl,
} from "../../../src/config/address.ts";

const HOST = "https://service.example";

it.each([
  [`${HOST}/`, "/people", `${HOST}/people`],
  [`${HOST}//crm//api/v1/public//`, "//people/stream", `${HOST}//crm/people/stream`],
  [`${HOST}/crm/api/v1/external`, "people", `${HOST}/crm/people`],
  [`${HOST}/api/v1/public/crm`, "/people", `${HOST}/api/v1/public/crm/people`],
])("%s with %s is asked at %s", (root, path, url) => {
  expect(serviceUrl(parseAddress(root), path).href).toBe(url);
});

it("is one service in all its spellings, and another at another path", () => {
  const digests = ["/crm", "/crm/", "/crm//", "/crm/api/v1/public/"].map((path) =>
    serviceDigest(parseAddress(`https://SERVICE.example:443${path}`)),
  );
  expect(new Set(digests).size).toBe(1);
  expect(digests[0]).toMatch(/^[0-9a-f]{16}$/);
  const others = ["/crm2", "/a/crm", "//crm", "/crm/x", ""].map((path) =>
    serviceDigest(new URL(`${HOST}${path}`)),
  );
  expect(new Set([...digests, ...others]).size).toBe(6);
  expect(serviceDigest(new URL("http://service.example/crm"))).not.toBe(digests[0]);
});

it("a key is known by all before its last line, and is none of its secret", () => {
  expect(keyDigest("svc_1_a")).toBe(keyDigest("svc_1_b"));
  expect(new Set(["svc_1_a", "svc_2_a", "svc", "svc_1"].map(keyDigest)).size).toBe(3);
});

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 16);

it.each([
  ["https://service.example/crm//", "https://service.example/crm"],
  ["https://service.example", "https://service.example"],
  ["http://service.example:8080/", "http://service.example:8080"],
  ["https://service.example:443/a/b", "https://service.example/a/b"],
])("the digest of %s is that of %s, by which states and receipts are found again", (root, text) => {
  expect(serviceDigest(new URL(root))).toBe(sha256(text));
});

it.each([
  ["svc_1_a", "svc_1"],
  ["svc_1_", "svc_1"],
  ["svc", "svc"],
  ["_a", "_a"],
  ["__a", "_"],
  ["a\nb_c", "a\nb"],
])("the digest of the key %j is that of %j", (key, text) => {
  expect(keyDigest(key)).toBe(sha256(text));
});

it.each([
  ["localhost", true],
  ["localhost.", true],
  ["a.localhost", true],
  ["a.localhost.", true],
  ["[::1]", true],
  ["127.0.0.1", true],
  ["127.255.12.3", true],
  ["127.0.0", false],
  ["127.0.0.1.2", false],
  ["1127.0.0.1", false],
  ["127.0.0.1.example", false],
  ["localhosts", false],
  ["alocalhost", false],
  ["localhost.a", false],
  ["localhost..", false],
  ["[::2]", false],
  ["", false],
])("%s is this machine: %j", (hostname, isOurs) => {
  expect(isLoopback(hostname)).toBe(isOurs);
});

const NONE = "must be an address such as https://host or https://host/path";
const SCHEME = "must begin with https:// or http://";
const PERSON = "must not hold a user name or password";
const QUERY = "must not hold a query or a fragment: only host and path";
const CLEAR =
  "must begin with https://, since http:// sends the key in clear: set allow_insecure_http to true if that is meant";

it.each<[text: string, problem: string | undefined]>([
  ["https://host", undefined],
  ["https://host/a/b/", undefined],
  ["HTTPS://HOST:8443", undefined],
  ["http://localhost:1", undefined],
  ["http://127.0.0.1/x", undefined],
  ["http://host", CLEAR],
  ["http://localhost.example", CLEAR],
  ["host", NONE],
  ["", NONE],
  ["https://", NONE],
  ["https://host/a b", NONE],
  [" https://host", NONE],
  ["https://host\n", NONE],
  ["ftp://host", SCHEME],
  ["host:443", SCHEME],
  ["https://user@host", PERSON],
  ["https://:word@host", PERSON],
  ["https://user:word@host", PERSON],
  ["ftp://user@host", SCHEME],
  ["https://host?", QUERY],
  ["https://host/?a=b", QUERY],
  ["https://host#", QUERY],
  ["https://host/#a", QUERY],
  ["http://host/?a", QUERY],
  ["http://user@host/?a", PERSON],
])("the address %j has the problem %j", (text, problem) => {
  expect(addressProblem(text, false)).toBe(problem);
  expect(addressProblem(text, true)).toBe(problem === CLEAR ? undefined : problem);
});
