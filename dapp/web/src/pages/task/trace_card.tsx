/** The trace: every segment of the run, and which of them somebody looked at. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { traceQuery } from "~/api/queries";
import type { Task, TraceSegment, TraceView } from "~/api/types";
import { Badge, Button, Card, Empty, Skeleton } from "~/components/basics";
import { AddressTag } from "~/components/chain";
import { Trouble } from "~/components/errors";
import { ChallengeDialog } from "~/pages/task/challenge_dialog";
import type { Tone } from "~/protocol/states";
import { formatCount, formatPercent, plural, shortHash } from "~/protocol/units";

const MOST_CELLS = 400;

const LOOKS: Record<TraceSegment["status"], { label: string; tone: Tone }> = {
  drawn: { label: "Drawn", tone: "info" },
  audited: { label: "Audited: agrees", tone: "good" },
  differs: { label: "Audited: differs", tone: "bad" },
  challenged: { label: "Challenged", tone: "warn" },
  upheld: { label: "Found wrong", tone: "bad" },
  rejected: { label: "Challenged: right", tone: "good" },
  undecided: { label: "Not decided", tone: "warn" },
};

export function TraceCard({ view }: { view: Task }) {
  const { task } = view;
  const { data, error, refetch } = useQuery(traceQuery(task.id));
  const [isChallenging, setChallenging] = useState(false);
  const canChallenge = view.clock.moves.some((move) => move.call.startsWith("challenge") && move.is_open);
  if (error && !data) return <Trouble error={error} what="The trace" retry={() => void refetch()} />;
  return (
    <Card
      title="Trace"
      action={
        canChallenge && (
          <Button size="small" onClick={() => setChallenging(true)}>
            Challenge a segment
          </Button>
        )
      }
    >
      {!data ? (
        <Skeleton height="180px" />
      ) : data.segments === 0 ? (
        <Empty icon="shield" title="This task has no trace">
          <p>Its verification compares or scores whole results, so there are no segments to recompute.</p>
        </Empty>
      ) : (
        <Trace view={data} />
      )}
      {isChallenging && <ChallengeDialog view={view} onClose={() => setChallenging(false)} />}
    </Card>
  );
}

function Trace({ view }: { view: TraceView }) {
  const byNumber = new Map(view.looked_at.map((one) => [one.segment, one]));
  const cells = cellsOf(view.segments, byNumber);
  return (
    <div className="stack">
      <p className="muted">
        {plural(view.segments, "segment")}, of which {formatCount(view.looked_at.length)} were looked at.
        {view.detection !== null &&
          ` Had one in ten been made up, the audits would have met it with a chance of ${formatPercent(view.detection)}.`}
      </p>
      <div className="trace" aria-hidden="true">
        {cells.map((cell) => (
          <span
            key={cell.from}
            className={`cell${cell.status ? ` cell-${cell.status}` : ""}`}
            title={cell.title}
          />
        ))}
      </div>
      <div className="trace-legend">
        <span>
          <i className="cell" aria-hidden="true" /> not drawn
        </span>
        <span>
          <i className="cell cell-drawn" aria-hidden="true" /> drawn
        </span>
        <span>
          <i className="cell cell-audited" aria-hidden="true" /> audited
        </span>
        <span>
          <i className="cell cell-challenged" aria-hidden="true" /> challenged
        </span>
        <span>
          <i className="cell cell-upheld" aria-hidden="true" /> wrong
        </span>
      </div>
      {view.looked_at.length > 0 && <LookedAt segments={view.looked_at} />}
      {view.root && (
        <p className="small muted">
          Root of the trace: <code title={view.root}>{shortHash(view.root)}</code>
        </p>
      )}
    </div>
  );
}

interface Cell {
  from: number;
  status: TraceSegment["status"] | null;
  title: string;
}

/** One cell for a segment, or for several where there are many; the worst of them gives the colour. */
function cellsOf(segments: number, byNumber: ReadonlyMap<number, TraceSegment>): Cell[] {
  const span = Math.ceil(segments / MOST_CELLS);
  const worst: TraceSegment["status"][] = [
    "upheld",
    "differs",
    "challenged",
    "undecided",
    "rejected",
    "drawn",
    "audited",
  ];
  return Array.from({ length: Math.ceil(segments / span) }, (_, at) => {
    const from = at * span;
    const inside = Array.from({ length: Math.min(span, segments - from) }, (_, step) =>
      byNumber.get(from + step),
    ).filter((one) => one !== undefined);
    const status = worst.find((one) => inside.some((segment) => segment.status === one)) ?? null;
    const name = span > 1 ? `segments ${from} to ${Math.min(from + span, segments) - 1}` : `segment ${from}`;
    return {
      from,
      status,
      title: status ? `${name}: ${LOOKS[status].label.toLowerCase()}` : `${name}: not drawn`,
    };
  });
}

function LookedAt({ segments }: { segments: TraceSegment[] }) {
  return (
    <div className="table-wrap">
      <table className="table table-cards">
        <caption className="visually-hidden">Segments that somebody looked at</caption>
        <thead>
          <tr>
            <th scope="col">Segment</th>
            <th scope="col">Outcome</th>
            <th scope="col">Auditor</th>
            <th scope="col">Challenged by</th>
            <th scope="col">Referees</th>
          </tr>
        </thead>
        <tbody>
          {segments.map((one) => (
            <tr key={one.segment}>
              <td className="card-title bold">{one.title ?? `Segment ${one.segment}`}</td>
              <td data-label="Outcome">
                <span className="pair">
                  <span>
                    <Badge tone={LOOKS[one.status].tone}>{LOOKS[one.status].label}</Badge>
                  </span>
                  {one.verdict && <span className="small muted">{one.verdict}</span>}
                </span>
              </td>
              <td data-label="Auditor">
                {one.auditor ? (
                  <span className="pair">
                    <AddressTag address={one.auditor} link />
                    <span className="small faint">{one.audit}</span>
                  </span>
                ) : (
                  "–"
                )}
              </td>
              <td data-label="Challenged by">
                {one.challenger ? <AddressTag address={one.challenger} link /> : "–"}
              </td>
              <td data-label="Referees">{one.referees.length || "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
