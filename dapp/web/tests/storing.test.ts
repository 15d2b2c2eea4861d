import { afterEach, describe, expect, it, vi } from "vitest";
import { draftFromManifest, isSameDraft, withMode } from "~/drafts/draft";
import { storeDraft } from "~/drafts/storing";

const begun = draftFromManifest({ model: {}, data: {}, training: { mode: "single" } }, "here", "moons");

/** The server's drafts, by their numbers; says what it was asked. */
function server(numbers: string[], full = false) {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (path: string, { method = "GET" }: RequestInit) => {
    asked.push(`${method} ${path}`);
    const number = path.split("/").at(-1) ?? "";
    if (method === "PUT" && numbers.includes(number)) return Response.json({ id: number });
    if (method === "POST" && !full) return Response.json({ id: "new" }, { status: 201 });
    const error = { code: "no", message: "no", fix: "delete some", field: null, retry_after_s: null };
    return Response.json({ error }, { status: method === "PUT" ? 404 : 409 });
  });
  return asked;
}

afterEach(() => vi.unstubAllGlobals());

describe("a draft that the account keeps", () => {
  it.each([
    ["is added once", null, ["POST /api/v1/drafts"], "new"],
    ["is written over after that", "old", ["PUT /api/v1/drafts/old"], "old"],
    ["is added again where it is gone", "gone", ["PUT /api/v1/drafts/gone", "POST /api/v1/drafts"], "new"],
  ])("%s", async (_, stored, wanted, number) => {
    const asked = server(["old"]);
    expect((await storeDraft({ ...begun, stored })).id).toBe(number);
    expect(asked).toEqual(wanted);
  });

  it("is not called kept where the server refuses", async () => {
    server([], true);
    await expect(storeDraft(begun)).rejects.toMatchObject({ problem: { fix: "delete some" } });
  });
});

it("a draft is the same until some of it changes, wherever it is stored", () => {
  expect(isSameDraft(begun, { ...begun, stored: "old" })).toBe(true);
  expect(isSameDraft(begun, { ...begun, training: withMode(begun.training ?? {}, "sync", 2) })).toBe(false);
});
