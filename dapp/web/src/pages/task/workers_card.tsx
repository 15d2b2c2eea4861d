/** Who trains: where each worker is, and what it has contributed. */

import { useConfig } from "~/api/queries";
import type { SlotView, Task } from "~/api/types";
import { Badge, Bar, Card } from "~/components/basics";
import { AddressTag, useAmount } from "~/components/chain";
import { useNow } from "~/components/clock";
import { lastStep } from "~/pages/task/curves";
import type { Run } from "~/pages/task/use_run";
import { isOver, type Tone } from "~/protocol/states";
import { formatAgo, formatCount, formatPercent } from "~/protocol/units";

const STATUS: Record<SlotView["status"], { label: string; tone: Tone }> = {
  free: { label: "Free", tone: "warn" },
  joined: { label: "Joined", tone: "info" },
  answered: { label: "Answered", tone: "good" },
  revealed: { label: "Revealed", tone: "good" },
  left: { label: "Left", tone: "bad" },
};

export function WorkersCard({ view, run }: { view: Task; run: Run }) {
  const { task, slots } = view;
  return (
    <Card
      title="Workers"
      action={
        <span className="small muted">
          {task.slots_joined} of {task.slots} slots taken
        </span>
      }
    >
      <ul className="stack stack-m">
        {slots.map((slot) => (
          <Slot key={slot.index} slot={slot} view={view} run={run} />
        ))}
      </ul>
    </Card>
  );
}

function Slot({ slot, view, run }: { slot: SlotView; view: Task; run: Run }) {
  const amount = useAmount();
  const now = useNow(5_000);
  const { currency } = useConfig();
  const { task } = view;
  const steps = task.summary.steps ?? 0;
  // What comes live is newer than the last view of the task, unless it is of who had the slot before.
  const step = slot.step === null ? null : lastStep(run.curves, slot.index) || slot.step;
  const look = STATUS[slot.status];
  return (
    <li className="stack stack-s">
      <div className="row row-between">
        {slot.worker ? (
          <AddressTag address={slot.worker} link />
        ) : (
          <span className="muted">Slot {slot.index} is free</span>
        )}
        <Badge tone={look.tone}>{slot.is_lead && slot.claim ? "Leads" : look.label}</Badge>
      </div>
      {slot.worker && task.state === "running" && steps > 0 && (
        <Bar part={(step ?? 0) / steps} label={`Training of worker ${slot.index}`} />
      )}
      {slot.worker && (
        <p className="small muted">
          {[
            slot.phase && !isOver(task.state) ? slot.phase : null,
            step !== null ? `step ${formatCount(step)}` : null,
            slot.examples_per_s ? `${formatCount(Math.round(slot.examples_per_s))} examples/s` : null,
            slot.contribution !== null ? `${formatPercent(slot.contribution)} of the work` : null,
            slot.last_seen && !isOver(task.state) ? `heard ${formatAgo(slot.last_seen, now)}` : null,
            BigInt(slot.credited_wei) > 0n ? `credited ${amount(slot.credited_wei, 4)}` : null,
          ]
            .filter(Boolean)
            .join(" · ") || `stake of ${amount(task.stake_wei, 4)} in ${currency.symbol}`}
        </p>
      )}
      {slot.pong_by && <p className="small tone-warn">Somebody asked it for a sign of life.</p>}
    </li>
  );
}
