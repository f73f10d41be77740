import { expect, it } from "vitest";
import { keyDigest, parseAddress, serviceDigest, serviceUrl } from "../../src/config/address.ts";

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
