import { readFileSync } from "node:fs";
import { afterEach, describe, expect, it, vi } from "vitest";
import { MOST_FILES, refusalOf, upload } from "~/api/uploads";

const AT_ONCE = 64 * 1024 * 1024;

function files(count: number, size: number): File[] {
  return Array.from({ length: count }, (_, at) => ({ name: `${at}.png`, size }) as File);
}

describe("files that are sent at once", () => {
  afterEach(() => void vi.unstubAllGlobals());

  it.each([
    ["a folder of what is taken", files(1_000, 60_000), null],
    ["one file, which comes in pieces, however large", files(1, 20 * AT_ONCE), null],
    ["too many files", files(1_001, 10), /^These are 1,001 files, and at most 1,000 are taken at once\./],
    [
      "too large a folder",
      files(100, 1024 * 1024),
      /^These 100 files have .+, and several files may have .+/,
    ],
  ])("%s", (_, found, said) => {
    const refusal = refusalOf(found, AT_ONCE);
    if (said === null) expect(refusal).toBeNull();
    else {
      expect(refusal).toMatch(said);
      expect(refusal).toMatch(/one \.npz or TFRecord file/);
    }
  });

  it.each([[files(1_001, 10)], [files(2, AT_ONCE)]])("are refused before any byte of them", async (found) => {
    const sent = vi.fn();
    vi.stubGlobal("XMLHttpRequest", sent);
    vi.stubGlobal("fetch", sent);
    const stop = new AbortController();
    await expect(upload(found, AT_ONCE, () => {}, stop.signal)).rejects.toThrow(/Pack the records/);
    expect(sent).not.toHaveBeenCalled();
  });

  it("are as many as the server takes", () => {
    const server = readFileSync(new URL("../../uploads/storing.py", import.meta.url), "utf8");
    const [, most] = /MOST_FILES = .*?([\d_]+)$/m.exec(server) ?? [];
    expect(Number(most?.replaceAll("_", ""))).toBe(MOST_FILES);
  });
});
