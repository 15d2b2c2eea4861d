import { describe, expect, it } from "vitest";
import type { LogLine } from "~/api/types";
import {
  addLines,
  addMetrics,
  columnsOf,
  curvesOf,
  joinLines,
  lastStep,
  lastValue,
  orderedNames,
  placeFor,
  readingAt,
} from "~/pages/task/curves";

const worker = "0x5FbDB2315678afecb367f032d93F642f64180aa3";
const event = (slot: number, step: number, loss: number) => ({
  task: 1,
  slot,
  worker: worker as `0x${string}`,
  phase: "training",
  last: step,
  points: [{ step, time: step, values: { loss } }],
});

describe("curves", () => {
  it("tell how far a run is, and each worker of it", () => {
    const curves = curvesOf([
      { slot: 0, worker, name: "loss", steps: [1, 9], times: [1, 9], values: [3, 2] },
    ]);
    addMetrics(curves, event(1, 7, 5));
    expect([lastStep(curves), lastStep(curves, 1), lastStep(curves, 2)]).toEqual([9, 7, 0]);
  });

  it("grow by what comes live", () => {
    const curves = curvesOf([
      { slot: 0, worker, name: "loss", steps: [1, 2], times: [1, 2], values: [3, 2] },
    ]);
    addMetrics(curves, event(0, 3, 1));
    addMetrics(curves, event(1, 2, 5));
    const bySlot = curves.get("loss");
    expect(bySlot && columnsOf(bySlot)).toEqual({
      slots: [0, 1],
      data: [
        [1, 2, 3],
        [3, 2, 1],
        [null, 5, null],
      ],
    });
    expect(bySlot && lastValue(bySlot)).toBe(3);
  });

  it("are drawn anew from the step that a run was set back to", () => {
    const curves = curvesOf([]);
    for (const step of [1, 2, 3, 4]) addMetrics(curves, event(0, step, step));
    addMetrics(curves, event(0, 3, 9));
    expect(curves.get("loss")?.get(0)).toMatchObject({ steps: [1, 2, 3], values: [1, 2, 9] });
  });

  it("leave out what is no number", () => {
    const curves = curvesOf([]);
    addMetrics(curves, event(0, 1, Number.NaN));
    expect(curves.size).toBe(0);
  });

  it("come in the order that people look at them", () => {
    const names = ["examples_per_s", "top5", "val_loss", "accuracy", "loss"];
    const curves = curvesOf(
      names.map((name) => ({ slot: 0, worker, name, steps: [1], times: [1], values: [1] })),
    );
    expect(orderedNames(curves)).toEqual(["loss", "accuracy", "val_loss", "top5", "examples_per_s"]);
  });
});

describe("a chart that is read by keys", () => {
  it.each([
    ["ArrowLeft", null, 18],
    ["ArrowLeft", 0, 0],
    ["ArrowRight", 4, 5],
    ["ArrowRight", 19, 19],
    ["PageDown", 4, 0],
    ["PageUp", 4, 14],
    ["Home", 4, 0],
    ["End", 4, 19],
    ["a", 4, null],
  ])("goes by %s from %s to %s", (key, at, wanted) => {
    expect(placeFor(key, at, 19)).toBe(wanted);
  });

  it("says what each worker has there, and leaves out who has nothing", () => {
    const data: [number[], ...(number | null)[][]] = [
      [5, 10],
      [0.5, 0.25],
      [null, 0.125],
    ];
    expect(readingAt([0, 2], data, 0)).toEqual(["step 5", "worker 0: 0.5000"]);
    expect(readingAt([0, 2], data, 1)).toEqual(["step 10", "worker 0: 0.2500", "worker 2: 0.1250"]);
  });
});

describe("log lines", () => {
  const line = (id: number): LogLine => ({
    id,
    slot: 0,
    worker,
    time: id,
    level: "info",
    text: `line ${id}`,
  });

  it("stand in order, each once, and the oldest go where there are too many", () => {
    expect(addLines([line(1), line(2)], [line(2), line(3)]).map((one) => one.id)).toEqual([1, 2, 3]);
    expect(addLines([line(5)], [line(3), line(4)]).map((one) => one.id)).toEqual([3, 4, 5]);
    expect(addLines([line(1), line(2)], [line(3)], 2).map((one) => one.id)).toEqual([2, 3]);
  });

  it.each([
    ["go on where the server's reach back to them", [1, 2], [2, 3, 4], true, [5], [1, 2, 3, 4, 5]],
    ["go on where the server has no others", [1, 2], [4, 5], false, [], [1, 2, 4, 5]],
    ["begin anew where more were missed than the server gives", [1, 2], [8, 9], true, [9, 10], [8, 9, 10]],
    ["are those that came live where the server has none yet", [], [], false, [1], [1]],
  ])("%s", (_, before, items, has_more, early, wanted) => {
    const joined = joinLines(before.map(line), { items: items.map(line), has_more }, early.map(line));
    expect(joined.map((one) => one.id)).toEqual(wanted);
  });
});
