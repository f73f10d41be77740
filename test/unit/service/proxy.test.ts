import { describe, expect, it } from "vitest";
import { proxyFor, proxyVariable } from "../../../src/service/proxy.ts";

describe("NO_PROXY", () => {
  it.each<[noProxy: string, host: string, isAsked: boolean]>([
    ["10.0.0.0/8", "10.1.2.3", false],
    ["10.0.0.0/8", "11.1.2.3", true],
    ["127.0.0.1,172.16.0.0/12 192.168.4.0/22", "192.168.7.255", false],
    ["0.0.0.0/0", "203.0.113.1", false],
    ["10.0.0.0/8", "[::ffff:10.1.2.3]", false],
    ["::ffff:10.0.0.0/104", "10.1.2.3", false],
    ["::/0", "10.1.2.3", true],
    ["0.0.0.0/0", "[2001:db8::1]", true],
    ["10.1.2.3", "10.1.2.3", false],
    ["2.3,.2.3", "10.1.2.3", true],
    ["10.0.0.0/8:8080", "10.1.2.3:8080", false],
    ["10.0.0.0/8:8080", "10.1.2.3", true],
    ["fd00::/16", "[fd00::2]", false],
    ["fd00::/16", "[fd01::2]", true],
    ["fd00::2", "[fd00::2]", false],
    ["[fd00::2]:444", "[fd00::2]", true],
    ["fd00::/16:443", "[fd00::2]", false],
    ["*", "[fd00::2]", false],
    // What is no range names nothing.
    ["10/8,10.0/8,010.0.0.0/8", "10.0.0.1", true],
    ["fd00::/129", "[fd00::1]", true],
    ["a.example/8", "a.example", true],
    ["10.0.0.0/8", "10.0.0.1.example", true],
    ["a.example", "a.example", false],
    ["a.example", "B.A.example.", false],
    [".a.example", "b.a.example", false],
    ["*.a.example", "b.a.example", false],
    ["a.example", "ba.example", true],
    ["a.example:8443 ,x", "a.example:8443", false],
    ["a.example:8443", "a.example", true],
    ["bücher.example", "bücher.example", false],
    [". , ,", "a.example.", true],
    ["", "a.example", true],
  ])("%j: for %s a proxy is asked: %j", (noProxy, host, isAsked) => {
    const proxy = "http://proxy.example";
    const variable = proxyVariable(new URL(`https://${host}`), { HTTPS_PROXY: proxy, NO_PROXY: noProxy });
    expect(variable).toBe(isAsked ? "HTTPS_PROXY" : undefined);
  });
});

describe("the address of a proxy", () => {
  it.each<[value: string, uri: string, login?: string]>([
    ["http://proxy:8080", "http://proxy:8080"],
    ["  proxy  ", "http://proxy"],
    ["HTTPS://proxy/", "https://proxy"],
    ["http://[fd00::1]:8080", "http://[fd00::1]:8080"],
    ["http://u:secret%@proxy", "http://proxy", "u:secret%"],
    ["http://u:%zz%41%@proxy", "http://proxy", "u:%zzA%"],
    ["http://CORP\\u:secret@proxy", "http://proxy", "CORP\\u:secret"],
    ["http://token@proxy", "http://proxy", "token:"],
    ["http://:secret@proxy", "http://proxy", ":secret"],
    ["http://u:a@b:c d@proxy:1", "http://proxy:1", "u:a@b:c d"],
    ["http://u%3A1:p%40%C3%BC\u00fc%FF@proxy", "http://proxy", "u:1:p@\u00fc\u00fc\xff"],
    ["socks5h://u:p%41@proxy:1080", "socks5://proxy:1080", "u:pA"],
  ])("%j is taken as written", (value, uri, login) => {
    const found = proxyFor(new URL("https://a.example"), { http_proxy: value });
    const { token = "", username = "", password = "" } = found?.credentials ?? {};
    expect(found?.uri).toBe(uri);
    if (login === undefined) expect(token).toBe("");
    else
      expect([token.slice(0, 6), `${username}:${password}`.replace("\ufffd", "\xff")]).toEqual([
        "Basic ",
        login,
      ]);
  });

  it.each([
    ["http://"],
    ["host:port"],
    ["a b"],
    ["http://proxy:99999"],
    ["socks4://u:hunter2@proxy"],
    ["ftp://proxy"],
    ["http://u:hunter2@proxy/path"],
    ["http://u:hunter2@proxy?query"],
    ["http://pro%xy"],
    ["http://u:hunter2@"],
  ])("%j is refused by the name of its variable, without its value", (value) => {
    const open = () => proxyFor(new URL("https://a.example"), { https_proxy: "", HTTPS_PROXY: value });
    expect(open).toThrow(/variable HTTPS_PROXY: it must be(?!.*hunter2)/);
  });
});
