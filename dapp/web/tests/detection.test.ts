import { describe, expect, it } from "vitest";
import { auditable, detection } from "~/protocol/detection";

/** All ways to draw, counted one by one. */
function counted(segments: number, cheated: number, audits: number): number {
  let [all, hit] = [0, 0];
  for (let set = 0; set < 2 ** segments; set += 1) {
    const drawn = Array.from({ length: segments }, (_, at) => (set >> at) & 1);
    if (drawn.reduce((sum, one) => sum + one, 0) !== audits) continue;
    if (drawn.some((one, at) => one && drawn[(at + 1) % segments])) continue;
    all += 1;
    if (drawn.some((one, at) => one && at >= segments - cheated)) hit += 1;
  }
  return hit / all;
}

describe("the chance that audits meet a cheated segment", () => {
  it.each([
    [8, 1, 2],
    [8, 4, 2],
    [10, 3, 3],
    [12, 6, 4],
    [9, 2, 4],
  ])("of %i segments with %i cheated and %i audits is what counting gives", (segments, cheated, audits) => {
    expect(detection(segments, cheated, audits)).toBeCloseTo(counted(segments, cheated, audits), 12);
  });

  it("is certain where all is made up, and none without audits", () => {
    expect(detection(24, 24, 2)).toBe(1);
    expect(detection(24, 12, 0)).toBe(0);
  });

  it("is that of independent draws where there are very many segments", () => {
    expect(detection(100_000, 10_000, 2)).toBeCloseTo(0.19, 6);
  });
});

describe("rule A4: a trace bears at most half as many audits as it has segments, and at least one", () => {
  it.each([
    [1, 5, 1],
    [4, 5, 2],
    [24, 5, 5],
    [0, 5, 0],
  ])("%i segments bear of %i audits %i", (segments, audits, seats) => {
    expect(auditable(segments, audits)).toBe(seats);
  });
});
