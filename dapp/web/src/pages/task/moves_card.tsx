/** What the visitor may do with this task now, as buttons; what comes later, with its time. */

import type { MoveView, Task } from "~/api/types";
import { Button, Card, Notice } from "~/components/basics";
import { moveCall } from "~/pages/task/calls";
import { useChainNow, whoOf } from "~/pages/task/clock_card";
import { isOver } from "~/protocol/states";
import { formatMoment } from "~/protocol/units";
import { useSend } from "~/transactions/sending";
import { useWallet } from "~/wallet/use_wallet";

const LABELS: Record<string, (move: MoveView) => string> = {
  cancel: () => "Cancel task",
  expire: () => "Move on",
  settle: () => "Settle and pay everyone",
  settleShares: () => "Settle and pay everyone",
  draw: () => "Draw auditors",
  drawReferees: (move) => `Draw referees of segment ${move.segment}`,
  resolve: (move) => `End dispute about segment ${move.segment}`,
  evict: (move) => `Evict silent slot ${move.slot}`,
};

export function MovesCard({ view }: { view: Task }) {
  const wallet = useWallet();
  const { send, isBusy, error } = useSend();
  const { task, clock } = view;
  const chainNow = useChainNow(clock.now);
  const me = wallet.address?.toLowerCase();
  const isMine = (move: MoveView) =>
    move.who.length === 0 || move.who.some((one) => one.toLowerCase() === me);
  const known = clock.moves.filter((move) => move.call in LABELS && moveCall(move, view) !== null);
  const isOpen = (move: MoveView) =>
    (move.since === null || chainNow >= move.since || move.is_open) &&
    (move.by === null || chainNow < move.by);
  const open = known.filter((move) => isOpen(move) && isMine(move));
  const later = known.filter((move) => !isOpen(move) && move.since !== null && isMine(move));
  const isRequester = me === task.requester.toLowerCase();
  if (isOver(task.state) && open.length === 0) return null;
  return (
    <Card title="What you can do">
      <div className="stack stack-m">
        {error && (
          <Notice tone="bad" title="Not sent" urgent>
            {error}
          </Notice>
        )}
        {open.map((move) => (
          <div key={`${move.call}-${move.segment}-${move.slot}`} className="stack stack-s">
            <Button
              look={move.call === "cancel" ? "danger" : "primary"}
              busy={isBusy}
              onClick={() => {
                const data = moveCall(move, view);
                if (data)
                  void send({
                    title: `${labelOf(move)}: task ${task.id}`,
                    kind: move.call,
                    task: task.id,
                    data,
                  });
              }}
            >
              {labelOf(move)}
            </Button>
            <span className="small muted">{consequence(move)}</span>
          </div>
        ))}
        {later.map((move) => (
          <p key={`${move.call}-${move.segment}-${move.slot}-later`} className="small muted">
            From {formatMoment(move.since ?? 0)}: {whoOf(move, view.names, wallet.address).toLowerCase()} can{" "}
            {move.what}.
          </p>
        ))}
        {open.length === 0 && later.length === 0 && (
          <p className="small muted">
            {isRequester || !wallet.isConnected
              ? "Nothing at present: the workers and auditors are at it."
              : "Nothing at present. Challenges are made from the trace while the window is open."}
          </p>
        )}
      </div>
    </Card>
  );
}

function labelOf(move: MoveView): string {
  return LABELS[move.call]?.(move) ?? move.call;
}

function consequence(move: MoveView): string {
  if (move.call === "cancel")
    return "Possible until the last slot is taken. The whole escrow comes back as credit.";
  const text = move.what.charAt(0).toUpperCase() + move.what.slice(1);
  return `${text}. Anyone may do this; it costs only gas.`;
}
