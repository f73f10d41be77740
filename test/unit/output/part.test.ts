import { readFileSync, statSync } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { Part } from "../../../src/output/files/part.ts";
import { tempDir } from "../../support/temp-dir.ts";

describe("Part", () => {
  it.each([false, true])("is a file once there is a batch, and has every byte (gzip: %s)", async (gzip) => {
    const folder = await tempDir();
    const part = new Part(join(folder, ".part"), gzip, 8);
    await part.append("1234567", 1);
    expect([part.text, await readdir(folder)]).toEqual(["1234567", []]);
    await part.append("\u00e9", 1);
    expect([part.text, part.length, await readdir(folder)]).toEqual([undefined, 8, [".part"]]);
    await part.append("rest", 2);
    await part.seal();
    const bytes = readFileSync(part.path);
    expect((gzip ? gunzipSync(bytes) : bytes).toString("latin1")).toBe("1234567\u00e9rest");
    expect(statSync(part.path).mode & 0o777).toBe(0o600);
    await part.discard();
    expect(await readdir(folder)).toEqual([]);
  });

  it("takes no file for its own", async () => {
    const path = join(await tempDir(), ".part");
    await writeFile(path, "precious");
    await expect(new Part(path, false, 1).append("12", 1)).rejects.toThrow("EEXIST");
    expect(readFileSync(path, "utf8")).toBe("precious");
  });
});
