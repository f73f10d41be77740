import { describe, expect, it } from "vitest";
import { parseConfig } from "../../../src/config/config.ts";
import { receiptsPathOf } from "../../../src/jobs/identity.ts";

const HOME = { HOME: "/home/me" };

const pathOf = (settings: object, environment: Readonly<Record<string, string>> = HOME) =>
  receiptsPathOf(
    parseConfig({ base_url: "https://a.example", api_key: "svc_0a1b2c3d_one", ...settings }, {}),
    environment,
  );

describe("receiptsPathOf()", () => {
  it("is in the user's state folder, as the environment says, and not named", () => {
    const name = "source-contact-intelligence\\/receipts-[0-9a-f]{16}\\.jsonl$";
    const path = expect.stringMatching(new RegExp(`^\\/home\\/me\\/\\.local\\/state\\/${name}`));
    expect(pathOf({})).toEqual({ path, isNamed: false });
    const { path: elsewhere } = pathOf({}, { ...HOME, XDG_STATE_HOME: "/var/states" }) ?? {};
    expect(elsewhere).toMatch(new RegExp(`^\\/var\\/states\\/${name}`));
  });

  it("is one for each address and id of a key, whatever the key's secret", () => {
    expect(pathOf({ api_key: "svc_0a1b2c3d_another" })).toEqual(pathOf({}));
    const others = [
      {},
      { api_key: "svc_99999999_one" },
      { base_url: "https://b.example" },
      { api_key: "plain1" },
      { api_key: "plain2" },
      { external_api: { api_url: "https://x.example", api_key: "svc_0a1b2c3d_one" } },
    ];
    expect(new Set(others.map((settings) => pathOf(settings)?.path)).size).toBe(others.length);
  });

  it("is where the config says, or nowhere, and nowhere for a service on this machine", () => {
    expect(pathOf({ receipts_file: "mine.jsonl" })).toMatchObject({ isNamed: true });
    const hosts = ["localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "[::1]"];
    const nowhere = [{ receipts_file: "" }, ...hosts.map((host) => ({ base_url: `http://${host}:8080` }))];
    expect(nowhere.map((settings) => pathOf(settings))).toEqual(nowhere.map(() => null));
    expect(pathOf({ base_url: "http://localhost:1", receipts_file: "mine.jsonl" })).not.toBeNull();
  });
});
