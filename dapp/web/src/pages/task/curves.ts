/** Points of a run in columns, by metric and worker: as they are kept, merged and drawn. */

import type { MetricsEvent } from "~/api/live";
import type { LogLine, LogPage, MetricSeries } from "~/api/types";

export interface Curve {
  slot: number;
  steps: number[];
  values: number[];
}

/** By the metric's name, then by slot. */
export type Curves = Map<string, Map<number, Curve>>;

const MOST_LINES = 4_000;

export function curvesOf(series: readonly MetricSeries[]): Curves {
  const found: Curves = new Map();
  for (const one of series) {
    for (let at = 0; at < one.steps.length; at += 1)
      add(found, one.name, one.slot, one.steps[at] ?? 0, one.values[at] ?? 0);
  }
  return found;
}

export function addMetrics(curves: Curves, event: MetricsEvent): void {
  for (const point of event.points) {
    for (const [name, value] of Object.entries(point.values))
      add(curves, name, event.slot, point.step, value);
  }
}

/** Steps only grow, but for a run that was set back: then what was there after that step is drawn anew. */
function add(curves: Curves, name: string, slot: number, step: number, value: number): void {
  if (!Number.isFinite(value)) return;
  const bySlot = curves.get(name) ?? new Map<number, Curve>();
  if (!curves.has(name)) curves.set(name, bySlot);
  const curve = bySlot.get(slot) ?? { slot, steps: [], values: [] };
  if (!bySlot.has(slot)) bySlot.set(slot, curve);
  let end = curve.steps.length;
  while (end > 0 && (curve.steps[end - 1] ?? 0) >= step) end -= 1;
  curve.steps.length = end;
  curve.values.length = end;
  curve.steps.push(step);
  curve.values.push(value);
}

/** Lines in order, each once; the oldest are let go where there are too many. */
export function addLines(
  before: readonly LogLine[],
  more: readonly LogLine[],
  most = MOST_LINES,
): readonly LogLine[] {
  if (!more.length) return before;
  const last = before.at(-1)?.id ?? -1;
  const isAppended = (more[0]?.id ?? 0) > last;
  if (isAppended) return [...before, ...more].slice(-most);
  const byId = new Map([...before, ...more].map((line) => [line.id, line]));
  return [...byId.values()].sort((a, b) => a.id - b.id).slice(-most);
}

/** Lines that were there before the server was asked, those it gave, and those that came while it answered. */
export function joinLines(
  before: readonly LogLine[],
  page: Pick<LogPage, "items" | "has_more">,
  early: readonly LogLine[],
): readonly LogLine[] {
  // It gives only so many: where more than those were missed, what was there before would leave a hole.
  const isTorn = page.has_more && (page.items[0]?.id ?? 0) > (before.at(-1)?.id ?? -1);
  return addLines(isTorn ? page.items : addLines(page.items, before), early);
}

export interface Columns {
  slots: number[];
  /** Steps, then the values of each slot; null where a slot has none at that step. */
  data: [number[], ...(number | null)[][]];
}

/** One table for a chart: all steps that any worker told of. */
export function columnsOf(bySlot: ReadonlyMap<number, Curve>): Columns {
  const slots = [...bySlot.keys()].sort((a, b) => a - b);
  const steps = [...new Set(slots.flatMap((slot) => bySlot.get(slot)?.steps ?? []))].sort((a, b) => a - b);
  const place = new Map(steps.map((step, at) => [step, at]));
  const columns = slots.map((slot) => {
    const column = new Array<number | null>(steps.length).fill(null);
    const curve = bySlot.get(slot);
    curve?.steps.forEach((step, at) => {
      column[place.get(step) ?? 0] = curve.values[at] ?? null;
    });
    return column;
  });
  return { slots, data: [steps, ...columns] };
}

/** What a chart says at one of its steps: the step, and each worker's value there. */
export function readingAt(slots: readonly number[], data: Columns["data"], at: number): string[] {
  const values = slots.flatMap((slot, index) => {
    const value = data[index + 1]?.[at];
    return value === null || value === undefined ? [] : [`worker ${slot}: ${value.toPrecision(4)}`];
  });
  return [`step ${data[0][at]}`, ...values];
}

const FAR = 10;

/** Where a key leads among the points of a chart, from the last one on; null where it leads nowhere. */
export function placeFor(key: string, at: number | null, last: number): number | null {
  const here = at ?? last;
  const to = {
    ArrowLeft: here - 1,
    ArrowRight: here + 1,
    ArrowDown: here - 1,
    ArrowUp: here + 1,
    PageDown: here - FAR,
    PageUp: here + FAR,
    Home: 0,
    End: last,
  }[key];
  return to === undefined || last < 0 ? null : Math.min(last, Math.max(0, to));
}

/** What people look at first. */
const FIRST = ["loss", "accuracy", "val_loss", "val_accuracy"];
const LAST = ["examples_per_s"];
/** Of the machine, not of the model; what the test gave is one number. Both are told with the result. */
export const NOT_DRAWN: readonly string[] = ["train_s", "energy_j", "lost_s"];

/** As many charts as a page bears; whoever wants the others takes TensorBoard's file. */
export const MOST_CHARTS = 24;

export function orderedNames(curves: Curves): string[] {
  const rank = (name: string) => {
    const early = FIRST.indexOf(name);
    return early >= 0 ? early : LAST.includes(name) ? 1000 : 100;
  };
  return [...curves.keys()]
    .filter((name) => !NOT_DRAWN.includes(name) && !name.startsWith("test/"))
    .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

/** How far a run is, or one worker of it; 0 where nothing was told. */
export function lastStep(curves: Curves, slot?: number): number {
  const all = [...curves.values()].flatMap((bySlot) => [...bySlot.values()]);
  const theirs = all.filter((curve) => slot === undefined || curve.slot === slot);
  return Math.max(0, ...theirs.map((curve) => curve.steps.at(-1) ?? 0));
}

export function lastValue(bySlot: ReadonlyMap<number, Curve>): number | null {
  const ends = [...bySlot.values()]
    .map((curve) => curve.values.at(-1))
    .filter((value) => value !== undefined);
  return ends.length ? ends.reduce((sum, value) => sum + value, 0) / ends.length : null;
}
