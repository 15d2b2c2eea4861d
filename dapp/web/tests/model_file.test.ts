import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { modelCid } from "~/content/model_file";

const CID = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy";

/** What the server says, one answer after the other; the last one from then on. */
function server(...answers: (() => Response)[]) {
  const asked = vi.fn(async (_: string) => (answers.length > 1 ? answers.shift() : answers[0])?.());
  vi.stubGlobal("fetch", asked);
  return asked;
}

const made = () => new Response("the file", { headers: { "x-content-cid": CID } });
const refused =
  (status: number, message: string, retry_after_s: number | null, fix: string | null = null) =>
  () =>
    Response.json({ error: { code: "no", message, fix, field: null, retry_after_s } }, { status });

async function asked(said: string[] = []) {
  const found = modelCid(7, (why) => said.push(why));
  // Before time goes on: a refusal at once is seen by who waits for it.
  const settled = found.then(
    (cid) => cid,
    (error: Error) => error,
  );
  await vi.runAllTimersAsync();
  return settled;
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe("the model file of a task", () => {
  it("is called what the server calls it", async () => {
    server(made);
    expect(await asked()).toBe(CID);
  });

  it.each([
    [
      "too many ask",
      refused(429, "too many requests", 3),
      /^Too many requests\. It is asked again in 3 s\.$/,
    ],
    [
      "the engine is busy",
      refused(503, "the engine is busy", 1.5),
      /^The engine is busy\. It is asked again in 2 s\.$/,
    ],
    [
      "something before the server is",
      () => new Response("<html>", { status: 503, headers: { "retry-after": "4" } }),
      /status 503\. Try again in a moment\. It is asked again in 4 s\.$/,
    ],
  ])("is asked for again when the server says so, where %s", async (_, busy, why) => {
    const asking = server(busy, busy, made);
    const said: string[] = [];
    expect(await asked(said)).toBe(CID);
    expect(asking).toHaveBeenCalledTimes(3);
    expect(said).toEqual([expect.stringMatching(why), expect.stringMatching(why)]);
  });

  it.each([
    ["is refused", refused(422, "the model has a layer that cannot be saved", null), 1],
    ["could never be made here", refused(503, "this server has no sandbox", null, "install bubblewrap"), 1],
    ["is not made for a long time", refused(503, "the engine is busy", 2), 6],
  ])("says the server's reason where it %s", async (_, answer, tries) => {
    const asking = server(answer);
    const reason = ((await answer().json()) as { error: { message: string } }).error.message;
    expect(await asked()).toMatchObject({ message: reason });
    expect(asking).toHaveBeenCalledTimes(tries);
  });

  it("is not taken where nobody says what it is called", async () => {
    server(() => new Response("the file"));
    expect(await asked()).toMatchObject({
      message: expect.stringMatching(/weights can still be downloaded/),
    });
  });
});
