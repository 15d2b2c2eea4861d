/** The tail of the log, with search; it follows the end until somebody scrolls back. */

import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { get } from "~/api/client";
import type { LogLine, LogPage, Task } from "~/api/types";
import { Button, Card, Empty, SkeletonRows } from "~/components/basics";
import { useRested } from "~/components/debounce";
import { Trouble } from "~/components/errors";
import type { Run } from "~/pages/task/use_run";
import { isOver } from "~/protocol/states";

const DRAWN = 800;

export function LogCard({ view, run }: { view: Task; run: Run }) {
  const [text, setText] = useState("");
  const [slot, setSlot] = useState("");
  const wanted = useRested(text.trim());
  const { id } = view.task;
  // Older lines than those loaded are searched by the server.
  const found = useQuery({
    queryKey: ["task", id, "logs", wanted, slot],
    queryFn: ({ signal }) => get<LogPage>(`/tasks/${id}/logs`, { search: wanted, slot, limit: 500 }, signal),
    enabled: Boolean(wanted || slot),
  });
  const isFiltered = Boolean(wanted || slot);
  const lines = isFiltered ? merged(found.data?.items ?? [], run.lines, wanted, slot) : run.lines;
  const shown = lines.slice(-DRAWN);
  return (
    <Card
      flush
      title="Log"
      action={
        <div className="row">
          <label>
            <span className="visually-hidden">Worker</span>
            <select className="select" value={slot} onChange={(event) => setSlot(event.target.value)}>
              <option value="">All workers</option>
              {view.slots.map((one) => (
                <option key={one.index} value={one.index}>
                  Worker {one.index}
                </option>
              ))}
            </select>
          </label>
          <label>
            <span className="visually-hidden">Search the log</span>
            <input
              className="input"
              type="search"
              placeholder="Search the log"
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
          </label>
        </div>
      }
    >
      {run.error && !run.isLoaded ? (
        <div className="card-body">
          <Trouble error={run.error} what="The log" retry={run.reload} />
        </div>
      ) : !run.isLoaded || (isFiltered && found.isPending) ? (
        <div className="card-body">
          <SkeletonRows rows={8} height="22px" />
        </div>
      ) : shown.length === 0 ? (
        <Empty icon={isFiltered ? "search" : "inbox"} title={isFiltered ? "No line has that" : "No line yet"}>
          <p>
            {isFiltered
              ? "Search for something shorter, or choose all workers."
              : isOver(view.task.state)
                ? "No worker published its log here."
                : "Workers' agents send their lines while they train."}
          </p>
        </Empty>
      ) : (
        <Lines
          lines={shown}
          mark={wanted}
          older={!isFiltered && run.hasOlderLines ? run.loadOlderLines : null}
        />
      )}
    </Card>
  );
}

function merged(
  found: readonly LogLine[],
  live: readonly LogLine[],
  text: string,
  slot: string,
): readonly LogLine[] {
  const wanted = text.toLowerCase();
  const last = found.at(-1)?.id ?? -1;
  const fresh = live.filter(
    (line) =>
      line.id > last &&
      line.text.toLowerCase().includes(wanted) &&
      (slot === "" || line.slot === Number(slot)),
  );
  return [...found, ...fresh];
}

function Lines({
  lines,
  mark,
  older,
}: {
  lines: readonly LogLine[];
  mark: string;
  older: (() => Promise<void>) | null;
}) {
  const box = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: new lines are the reason to scroll
  useEffect(() => {
    const element = box.current;
    if (element && follows.current) element.scrollTop = element.scrollHeight;
  }, [lines]);
  return (
    <div
      className="log"
      ref={box}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboards must be able to scroll it
      tabIndex={0}
      role="log"
      aria-label="Log lines"
      aria-live="off"
      onScroll={(event) => {
        const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
        follows.current = scrollHeight - scrollTop - clientHeight < 24;
      }}
    >
      {older && (
        <div className="card-body">
          <Button size="small" onClick={() => void older()}>
            Older lines
          </Button>
        </div>
      )}
      {lines.map((line) => (
        <div key={line.id} className={`log-line log-${line.level}`}>
          <span>{new Date(line.time * 1000).toLocaleTimeString("en-GB")}</span>
          <span title={line.worker}>w{line.slot}</span>
          <span>
            {(line.level === "error" || line.level === "warning") && `${line.level}: `}
            <Marked text={line.text} mark={mark} />
          </span>
        </div>
      ))}
    </div>
  );
}

function Marked({ text, mark }: { text: string; mark: string }) {
  const at = mark ? text.toLowerCase().indexOf(mark.toLowerCase()) : -1;
  if (at < 0) return text;
  return (
    <>
      {text.slice(0, at)}
      <mark>{text.slice(at, at + mark.length)}</mark>
      {text.slice(at + mark.length)}
    </>
  );
}
