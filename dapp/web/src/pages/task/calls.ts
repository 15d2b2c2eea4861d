/** The calls of the market that the page makes about a task, from what the server said of it. */

import type { Claim, MoveView, SlotView, StateProof } from "~/api/types";
import { marketCall } from "~/transactions/sending";

/** A claim as the market takes it: of the shares only their digest. */
function shown(claim: Claim) {
  return { result: claim.result, root: claim.root, shares: claim.shares_digest };
}

/** What calls are made from, of all that the server says about a task. */
interface View {
  task: { id: number };
  slots: readonly Pick<SlotView, "is_lead" | "claim">[];
}

/** The call of a move that anyone or the visitor may make; null where the page does not know how. */
export function moveCall(
  move: Pick<MoveView, "call" | "segment" | "slot">,
  view: View,
): `0x${string}` | null {
  const id = BigInt(view.task.id);
  switch (move.call) {
    case "cancel":
    case "expire":
    case "settle":
    case "draw":
      return marketCall(move.call, [id]);
    case "settleShares": {
      const claim = view.slots.find((slot) => slot.is_lead)?.claim;
      if (!claim) return null;
      return marketCall("settleShares", [id, shown(claim), claim.shares]);
    }
    case "drawReferees":
    case "resolve":
      return move.segment === null ? null : marketCall(move.call, [id, move.segment]);
    case "evict":
      return move.slot === null ? null : marketCall("evict", [id, BigInt(move.slot)]);
    default:
      return null;
  }
}

/** "The state after this segment is wrong", with the proof that it is the claim's. */
export function wrongCall(
  task: number,
  segment: number,
  { claim, state, proof }: Pick<StateProof, "claim" | "state" | "proof">,
): `0x${string}` {
  return marketCall("challenge", [BigInt(task), segment, shown(claim), state, proof]);
}

export function unservedCall(task: number, segment: number): `0x${string}` {
  return marketCall("challengeUnserved", [BigInt(task), segment]);
}
