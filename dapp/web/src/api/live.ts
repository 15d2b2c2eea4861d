/** Live events of the server. Whenever the line opens, what may have happened before is asked for. */

import { useEffect, useEffectEvent, useState } from "react";
import { BASE } from "~/api/client";
import type { LogLine, TimelineEvent } from "~/api/types";

export interface MetricsEvent {
  task: number;
  slot: number;
  worker: `0x${string}`;
  phase: string;
  last: number;
  points: { step: number; time: number; values: Record<string, number> }[];
}

export interface LiveEvents {
  task: { task: number; state: string; block: number };
  timeline: { task: number; events: TimelineEvent[] };
  undone: { block: number; tasks: number[] };
  worker: { address: string };
  metrics: MetricsEvent;
  logs: { task: number; lines: LogLine[] };
  manifest: { task: number; digest: string };
  head: { block: number; time: number };
  reset: Record<string, never>;
}

export type LiveName = keyof LiveEvents;
const NAMES: LiveName[] = [
  "task",
  "timeline",
  "undone",
  "worker",
  "metrics",
  "logs",
  "manifest",
  "head",
  "reset",
];

export type LiveEvent = { [Name in LiveName]: { name: Name; data: LiveEvents[Name] } }[LiveName];
export type Line = "connecting" | "open" | "broken";

interface Ear {
  onLine: (line: Line) => void;
  onEvent: (event: LiveEvent) => void;
}

const AGAIN_MS = 3_000;

/** Listen until the function that it gives back is called. */
export function listen(address: string, { onLine, onEvent }: Ear): () => void {
  let source: EventSource | null = null;
  let retry: ReturnType<typeof setTimeout> | undefined;
  const open = () => {
    source = new EventSource(address);
    source.onopen = () => {
      onLine("open");
      // What the page has may be older than the line: loaded before it was first open, or before it broke. The
      // browser goes on from the last event by itself, but knows of none where none was heard.
      onEvent({ name: "reset", data: {} });
    };
    source.onerror = () => {
      onLine("broken");
      // A refused line is not tried again by the browser.
      if (source?.readyState === EventSource.CLOSED) retry = setTimeout(open, AGAIN_MS);
    };
    for (const name of NAMES) {
      source.addEventListener(name, (event) => {
        onEvent({ name, data: JSON.parse((event as MessageEvent<string>).data) } as LiveEvent);
      });
    }
  };
  open();
  return () => {
    clearTimeout(retry);
    source?.close();
  };
}

/** Follow topics while the component is there; says whether the line is open. */
export function useLive(topics: readonly string[], take: (event: LiveEvent) => void, enabled = true): Line {
  const [line, setLine] = useState<Line>("connecting");
  const onEvent = useEffectEvent(take);
  const address = `${BASE}/events?${topics.map((topic) => `topic=${encodeURIComponent(topic)}`).join("&")}`;
  useEffect(() => {
    if (!enabled) return;
    return listen(address, { onLine: setLine, onEvent: (event) => onEvent(event) });
  }, [address, enabled]);
  return line;
}
