/** The clock: who must move next, by when, and what happens if nobody does. */

import type { MoveView, Task } from "~/api/types";
import { useNow } from "~/components/clock";
import { isOver, lookOf } from "~/protocol/states";
import { formatCountdown, formatMoment, shortAddress } from "~/protocol/units";
import { useWallet } from "~/wallet/use_wallet";

export function ClockCard({ view }: { view: Task }) {
  const { clock, task, names } = view;
  const wallet = useWallet();
  const chainNow = useChainNow(clock.now);
  if (isOver(task.state)) return null;
  const next = clock.next;
  const isWaiting = Boolean(next?.since && chainNow < next.since);
  const end = isWaiting ? next?.since : (next?.by ?? task.deadline);
  const left = end ? end - chainNow : null;
  return (
    <section className="card clock" aria-label="Who moves next">
      <div>
        <h2>{next ? sentenceOf(next, names, wallet.address, isWaiting) : lookOf(task.state).means}</h2>
        <p className="small muted">
          {end ? `${isWaiting ? "Possible from" : "Until"} ${formatMoment(end)}` : "At any time"}
        </p>
      </div>
      <div
        className={`clock-time${left !== null && left <= 0 ? " clock-late" : ""}`}
        role="timer"
        aria-live="off"
      >
        {left === null ? "–" : formatCountdown(left)}
      </div>
    </section>
  );
}

/** The chain's time, second by second. */
export function useChainNow(chainNow: number): number {
  const now = useNow();
  return now + useAhead(chainNow);
}

/** How far the chain's clock is ahead of ours: on test chains they differ by what was skipped. */
function useAhead(chainNow: number): number {
  const difference = chainNow - Date.now() / 1000;
  // Within a few seconds it is the age of the answer, and a steady clock is better.
  return Math.abs(difference) < 20 ? 0 : difference;
}

function sentenceOf(
  move: MoveView,
  names: Record<string, string>,
  me: string | undefined,
  isWaiting: boolean,
): string {
  const who = whoOf(move, names, me);
  const verb = isWaiting ? "can then" : move.who.length ? "must" : "can";
  return `${who} ${verb} ${withPronoun(move.what, who, move.who.length)}`;
}

/** The server speaks of one worker. */
function withPronoun(what: string, who: string, count: number): string {
  const pronoun = who === "You" ? "your" : count > 1 ? "their" : "its";
  return what.replace(/\bits\b/g, pronoun).replace(/\bit found\b/g, count > 1 ? "they found" : "it found");
}

export function whoOf(move: MoveView, names: Record<string, string>, me: string | undefined): string {
  if (!move.who.length) return "Anyone";
  const named = move.who.map((address) => {
    if (me && address.toLowerCase() === me.toLowerCase()) return "you";
    const found = Object.entries(names).find(([one]) => one.toLowerCase() === address.toLowerCase());
    return found ? found[1] : shortAddress(address);
  });
  const shown = named.length > 3 ? [...named.slice(0, 2), `${named.length - 2} others`] : named;
  const text = shown.length > 1 ? `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}` : (shown[0] ?? "");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
