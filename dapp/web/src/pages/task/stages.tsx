/** Posted, Joined, Training, Submitted, Audited, Settled: when each was reached, and by which transaction. */

import type { Stage } from "~/api/types";
import { Skeleton } from "~/components/basics";
import { TransactionTag } from "~/components/chain";
import { Icon } from "~/components/icons";
import { formatMoment } from "~/protocol/units";

const WORDS: Record<Stage["status"], string> = {
  done: "done",
  now: "now",
  waiting: "to come",
  failed: "ended here",
  skipped: "not reached",
};

const SHOWN_AT: readonly Stage["status"][] = ["done", "now", "failed"];

export function Stages({ stages }: { stages: Stage[] | undefined }) {
  if (!stages) {
    return (
      <div className="stages" aria-busy="true">
        <Skeleton height="92px" />
      </div>
    );
  }
  return (
    <ol className="stages" aria-label="Stages of the task">
      {stages.map((stage) => {
        const at = stage.ended_at ?? stage.began_at;
        return (
          <li
            key={stage.name}
            className={`stage stage-${stage.status}`}
            aria-current={stage.status === "now" ? "step" : undefined}
          >
            <span className="stage-mark" aria-hidden="true">
              <span>
                {stage.status === "done" && <Icon name="check" size={14} />}
                {stage.status === "failed" && <Icon name="cross" size={12} />}
              </span>
            </span>
            <span className="stage-title">
              {stage.title}
              <span className="visually-hidden">, {WORDS[stage.status]}</span>
            </span>
            {stage.detail && <span className="small muted">{stage.detail}</span>}
            {at && SHOWN_AT.includes(stage.status) && <span className="small faint">{formatMoment(at)}</span>}
            {stage.transaction && (
              <span className="small">
                <TransactionTag hash={stage.transaction} label={`${stage.transaction.slice(0, 8)}…`} />
              </span>
            )}
          </li>
        );
      })}
    </ol>
  );
}
