/** Metrics and log lines of a run: what the server has, and then what comes live. */

import { useCallback, useEffect, useRef, useState } from "react";
import { get } from "~/api/client";
import type { MetricsEvent } from "~/api/live";
import type { LogLine, LogPage, MetricsView } from "~/api/types";
import { addLines, addMetrics, type Curves, curvesOf, joinLines } from "~/pages/task/curves";

// Charts follow within half a second; drawing more often would only cost power.
const DRAW_EVERY_MS = 250;
// Right after posting the server may not know the task yet.
const RETRY_MS = 3_000;

export interface Run {
  curves: Curves;
  lines: readonly LogLine[];
  isLoaded: boolean;
  hasOlderLines: boolean;
  error: unknown;
  takeMetrics: (event: MetricsEvent) => void;
  takeLines: (lines: readonly LogLine[]) => void;
  loadOlderLines: () => Promise<void>;
  reload: () => void;
}

export function useRun(task: number): Run {
  const curves = useRef<Curves>(new Map());
  const lines = useRef<readonly LogLine[]>([]);
  const early = useRef<MetricsEvent[] | null>([]);
  const earlyLines = useRef<readonly LogLine[] | null>([]);
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const [shown, setShown] = useState<{ curves: Curves; lines: readonly LogLine[] }>({
    curves: new Map(),
    lines: [],
  });
  const [isLoaded, setLoaded] = useState(false);
  const [hasOlderLines, setOlder] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [attempt, setAttempt] = useState(0);

  const draw = useCallback(() => {
    timer.current ??= setTimeout(() => {
      timer.current = null;
      setShown({ curves: new Map(curves.current), lines: lines.current });
    }, DRAW_EVERY_MS);
  }, []);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new attempt is a reason to load again
  useEffect(() => {
    const stop = new AbortController();
    let again: ReturnType<typeof setTimeout> | undefined;
    early.current = [];
    earlyLines.current ??= [];
    Promise.all([
      get<MetricsView>(`/tasks/${task}/metrics`, { points: 2000 }, stop.signal),
      get<LogPage>(`/tasks/${task}/logs`, { limit: 500 }, stop.signal),
    ])
      .then(([metrics, page]) => {
        curves.current = curvesOf(metrics.series);
        // What came live meanwhile is either in the answer already, or newer.
        for (const event of early.current ?? []) addMetrics(curves.current, event);
        early.current = null;
        lines.current = joinLines(lines.current, page, earlyLines.current ?? []);
        earlyLines.current = null;
        setOlder(page.has_more);
        setError(null);
        setLoaded(true);
        draw();
      })
      .catch((caught: unknown) => {
        if (stop.signal.aborted) return;
        setError(caught);
        again = setTimeout(() => setAttempt((count) => count + 1), RETRY_MS);
      });
    return () => {
      clearTimeout(again);
      stop.abort();
    };
  }, [task, attempt, draw]);

  useEffect(
    () => () => {
      if (timer.current) clearTimeout(timer.current);
      timer.current = null;
    },
    [],
  );

  const takeMetrics = useCallback(
    (event: MetricsEvent) => {
      if (early.current) early.current.push(event);
      else addMetrics(curves.current, event);
      draw();
    },
    [draw],
  );
  const takeLines = useCallback(
    (found: readonly LogLine[]) => {
      if (earlyLines.current) earlyLines.current = addLines(earlyLines.current, found);
      else lines.current = addLines(lines.current, found);
      draw();
    },
    [draw],
  );
  const loadOlderLines = useCallback(async () => {
    const first = lines.current[0]?.id;
    if (first === undefined) return;
    const page = await get<LogPage>(`/tasks/${task}/logs`, { before: first, limit: 500 });
    lines.current = addLines(page.items, lines.current, Number.POSITIVE_INFINITY);
    setOlder(page.has_more);
    draw();
  }, [task, draw]);
  const reload = useCallback(() => {
    // From now on: what comes before the server is asked is no sign that nothing was missed.
    earlyLines.current ??= [];
    setAttempt((count) => count + 1);
  }, []);
  return { ...shown, isLoaded, hasOlderLines, error, takeMetrics, takeLines, loadOlderLines, reload };
}
