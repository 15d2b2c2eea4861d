/** uPlot in React: made once, fed as points come, drawn anew when the theme or the width changes. */

import "uplot/dist/uPlot.min.css";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import { type Columns, placeFor, readingAt } from "~/pages/task/curves";

const HEIGHT = 230;

interface PlotProps {
  title: string;
  slots: number[];
  data: Columns["data"];
}

/** What a CSS variable comes to here and now; a canvas cannot read it by itself. */
function colour(element: HTMLElement, name: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  element.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function optionsFor(element: HTMLElement, slots: number[]): uPlot.Options {
  const axis: uPlot.Axis = {
    stroke: colour(element, "--text-3"),
    grid: { stroke: colour(element, "--border"), width: 1 },
    ticks: { show: false },
    font: "12px system-ui, sans-serif",
  };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: true, y: false }, points: { size: 7 } },
    scales: { x: { time: false } },
    axes: [
      { ...axis, space: 70, size: 30 },
      { ...axis, space: 36, size: 58 },
    ],
    series: [
      {},
      ...slots.map((slot) => ({
        label: `worker ${slot}`,
        stroke: colour(element, `--line-${(slot % 6) + 1}`),
        width: 2,
        spanGaps: true,
        points: { show: false },
      })),
    ],
    plugins: [reading(slots)],
  };
}

/** The values under the cursor, beside it; the pointer moves it, and so do keys. */
function reading(slots: number[]): uPlot.Plugin {
  let box: HTMLDivElement;
  return {
    hooks: {
      init: (plot) => {
        box = document.createElement("div");
        box.className = "plot-reading";
        box.hidden = true;
        plot.over.append(box);
      },
      setCursor: (plot) => {
        const at = plot.cursor.idx;
        box.hidden = at === null || at === undefined;
        if (at === null || at === undefined) return;
        box.textContent = readingAt(slots, plot.data as Columns["data"], at).join("\n");
        const left = plot.cursor.left ?? 0;
        box.style.transform =
          left > plot.over.clientWidth / 2
            ? `translateX(calc(${left}px - 100% - 10px))`
            : `translateX(${left + 10}px)`;
      },
    },
  };
}

function point(plot: uPlot | null, at: number): void {
  plot?.setCursor({ left: plot.valToPos(plot.data[0][at] ?? 0, "x"), top: plot.over.clientHeight / 2 });
}

export default function Plot({ title, slots, data }: PlotProps) {
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(data);
  latest.current = data;
  const lines = slots.join(",");

  useEffect(() => {
    const element = holder.current;
    if (!element) return;
    const numbers = lines === "" ? [] : lines.split(",").map(Number);
    const make = () => {
      plot.current?.destroy();
      plot.current = new uPlot(optionsFor(element, numbers), latest.current as uPlot.AlignedData, element);
    };
    make();
    const resize = new ResizeObserver(() =>
      plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }),
    );
    resize.observe(element);
    const scheme = window.matchMedia("(prefers-color-scheme: dark)");
    window.addEventListener("trainyard-theme", make);
    scheme.addEventListener("change", make);
    return () => {
      resize.disconnect();
      window.removeEventListener("trainyard-theme", make);
      scheme.removeEventListener("change", make);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [lines]);

  const steps = data[0];
  const last = steps.length - 1;
  // The step that the keys have come to; its place changes as points come.
  const [step, setStep] = useState<number | null>(null);
  const found = step === null ? -1 : steps.findLastIndex((one) => one <= step);
  const at = found < 0 ? null : found;
  useEffect(() => {
    plot.current?.setData(data as uPlot.AlignedData);
  }, [data]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: new points move what is read
  useEffect(() => {
    // The new scales are there only then.
    if (at !== null) queueMicrotask(() => point(plot.current, at));
  }, [data, at]);

  const move = (event: KeyboardEvent) => {
    const to = placeFor(event.key, at, last);
    if (to === null) return;
    event.preventDefault();
    setStep(steps[to] ?? null);
  };
  const leave = () => {
    setStep(null);
    plot.current?.setCursor({ left: -10, top: -10 });
  };
  return (
    <div
      className="chart-plot"
      ref={holder}
      role="slider"
      tabIndex={0}
      aria-label={`${title} over ${steps.length} points, up to step ${steps[last] ?? 0}`}
      aria-valuemin={steps[0] ?? 0}
      aria-valuemax={steps[last] ?? 0}
      aria-valuenow={steps[at ?? last] ?? 0}
      aria-valuetext={readingAt(slots, data, at ?? last).join(", ")}
      onKeyDown={move}
      onBlur={leave}
    />
  );
}
