import { describe, expect, it } from "vitest";
import { parseConfig } from "../../src/config/config.ts";
import { receiptsPathOf } from "../../src/jobs/identity.ts";

const HOME = { HOME: "/home/me" };

const pathOf = (settings: object, environment: Readonly<Record<string, string>> = HOME) =>
  receiptsPathOf(
    parseConfig({ base_url: "https://a.example", api_key: "svc_0a1b2c3d_one", ...settings }, {}),
    environment,
  );

describe("receiptsPathOf()", () => {
  it("is in the user's state folder, as the environment says, and not named", () => {
    expect(pathOf({})).toEqual({
      path: expect.stringMatching(
        /^\/home\/me\/\.local\/state\/source-contact-intelligence\/receipts-[0-9a-f]{16}\.jsonl$/,
      ),
      isNamed: false,
    });
    expect(pathOf({}, { ...HOME, XDG_STATE_HOME: "/var/states" })?.path).toMatch(
      /^\/var\/states\/source-contact-intelligence\/receipts-/,
    );
  });

  it("is one for each address and id of a key, whatever the key's secret", () => {
    const same = pathOf({ api_key: "svc_0a1b2c3d_another" });
    expect(same).toEqual(pathOf({}));
    const paths = [
      pathOf({}),
      pathOf({ api_key: "svc_99999999_one" }),
      pathOf({ base_url: "https://b.example" }),
      pathOf({ api_key: "plain1" }),
      pathOf({ api_key: "plain2" }),
      pathOf({ external_api: { api_url: "https://x.example", api_key: "svc_0a1b2c3d_one" } }),
    ].map((place) => place?.path);
    expect(new Set(paths).size).toBe(paths.length);
  });

  it("is where the config says, or nowhere, and nowhere for a service on this machine", () => {
    expect(pathOf({ receipts_file: "mine.jsonl" })).toMatchObject({ isNamed: true });
    expect(pathOf({ receipts_file: "" })).toBeNull();
    for (const host of ["localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "[::1]"])
      expect(pathOf({ base_url: `http://${host}:8080` }), host).toBeNull();
    expect(pathOf({ base_url: "http://localhost:1", receipts_file: "mine.jsonl" })).not.toBeNull();
  });
});
