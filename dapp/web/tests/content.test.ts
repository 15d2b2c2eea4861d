import { readFileSync } from "node:fs";
import { afterEach, describe, expect, it, vi } from "vitest";
import { CarReader } from "~/content/car";
import { ContentError, cidText, matches, parseCid, rawCid, sha256 } from "~/content/cid";
import { fetchVerified } from "~/content/download";
import { readFile } from "~/content/unixfs";

const vector = JSON.parse(readFileSync(new URL("./vectors/run.json", import.meta.url), "utf8")) as {
  cid: string;
  cars: Record<string, string>;
};
const model = Uint8Array.from({ length: 3000 }, (_, at) => (at * 7) % 251);

function carOf(path: string): Uint8Array {
  return new Uint8Array(Buffer.from(vector.cars[path] ?? "", "base64"));
}

async function read(bytes: Uint8Array, pieceBytes = bytes.length): Promise<CarReader> {
  const reader = new CarReader();
  for (let at = 0; at < bytes.length; at += pieceBytes) await reader.push(bytes.slice(at, at + pieceBytes));
  reader.end();
  return reader;
}

describe("CIDs", () => {
  it.each([
    "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy",
    "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG",
    vector.cid,
  ])("%s is read and written alike", (text) => {
    expect(cidText(parseCid(text))).toBe(text);
  });

  it.each(["", "bafy!", "Qm", "zz", "https://example.org", "b"])("“%s” is none", (text) => {
    expect(() => parseCid(text)).toThrow(ContentError);
  });

  it("of a document is made of the digest that stands on the chain", async () => {
    const bytes = new TextEncoder().encode("hello world");
    expect(cidText(rawCid(await sha256(bytes)))).toBe(
      "bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e",
    );
  });

  it("name their bytes and no others", async () => {
    const cid = parseCid("bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e");
    expect(await matches(cid, new TextEncoder().encode("hello world"))).toBe(true);
    expect(await matches(cid, new TextEncoder().encode("hello World"))).toBe(false);
  });
});

describe("a download", () => {
  it.each([1, 7, 100, 100_000])(
    "is put together from verified blocks, arriving in pieces of %i bytes",
    async (pieceBytes) => {
      const { blocks } = await read(carOf("model.keras"), pieceBytes);
      expect(readFile(blocks, parseCid(vector.cid), ["model.keras"])).toEqual(model);
    },
  );

  it("finds files in folders of folders", async () => {
    const { blocks } = await read(carOf("states/a.txt"));
    const bytes = readFile(blocks, parseCid(vector.cid), ["states", "a.txt"]);
    expect(new TextDecoder().decode(bytes)).toBe("a state\n");
  });

  it("with a single bit changed in any block is refused", async () => {
    const good = carOf("model.keras");
    for (let at = 120; at < good.length; at += 97) {
      const bad = good.slice();
      bad[at] = (bad[at] ?? 0) ^ 1;
      const outcome = read(bad).then(({ blocks }) => readFile(blocks, parseCid(vector.cid), ["model.keras"]));
      await expect(outcome, `byte ${at}`).rejects.toThrow(ContentError);
    }
  });

  it("that breaks off, lacks a block or is of something else is refused", async () => {
    const good = carOf("model.keras");
    await expect(read(good.slice(0, -10))).rejects.toThrow(/broke off/);
    await expect(read(new Uint8Array(0))).rejects.toThrow(/empty/);
    const { blocks } = await read(carOf("states/a.txt"));
    expect(() => readFile(blocks, parseCid(vector.cid), ["model.keras"])).toThrow(/missing/);
    expect(() => readFile(blocks, parseCid(vector.cid), ["nothing"])).toThrow(/no “nothing”/);
    expect(() => readFile(blocks, parseCid(vector.cid), ["states"])).toThrow(/folder/);
  });
});

describe("fetching", () => {
  afterEach(() => vi.unstubAllGlobals());

  it("asks the page's own server for a CAR and counts what was checked", async () => {
    const asked = vi.fn(async (_address: string) => new Response(carOf("model.keras") as BodyInit));
    vi.stubGlobal("fetch", asked);
    const seen: number[] = [];
    const bytes = await fetchVerified(`${vector.cid}/model.keras`, (progress) => seen.push(progress.blocks));
    expect(bytes).toEqual(model);
    expect(asked.mock.calls[0]?.[0]).toBe(`/ipfs/${vector.cid}/model.keras?format=car&dag-scope=entity`);
    expect(seen.at(-1)).toBe(5);
  });

  it("says so when nobody has the content", async () => {
    vi.stubGlobal("fetch", async () => new Response("", { status: 404 }));
    await expect(fetchVerified(`${vector.cid}/model.keras`)).rejects.toThrow(/nobody serves/);
  });
});
