import { decodeFunctionData } from "viem";
import { describe, expect, it } from "vitest";
import type { Claim, StateProof } from "~/api/types";
import { moveCall, unservedCall, wrongCall } from "~/pages/task/calls";
import { marketAbi } from "~/protocol/abi";

const word = (byte: string): `0x${string}` => `0x${byte.repeat(32)}`;

const claim: Claim = {
  result: word("aa"),
  root: word("bb"),
  shares_digest: word("cc"),
  shares: [6000, 4000],
};
const shown = { result: word("aa"), root: word("bb"), shares: word("cc") };
const other: Claim = { ...claim, result: word("dd") };

const view = {
  task: { id: 7 },
  slots: [
    { is_lead: false, claim: other },
    { is_lead: true, claim },
  ],
};

function decoded(data: `0x${string}` | null) {
  if (data === null) throw new Error("there is no call");
  const { functionName, args } = decodeFunctionData({ abi: marketAbi, data });
  return [functionName, ...(args ?? [])];
}

function move(call: string, of: { segment?: number; slot?: number } = {}) {
  return { call, segment: of.segment ?? null, slot: of.slot ?? null };
}

describe("the call of a move", () => {
  it.each([
    ["cancel", move("cancel"), [7n]],
    ["expire", move("expire"), [7n]],
    ["settle", move("settle"), [7n]],
    ["draw", move("draw"), [7n]],
    ["settleShares", move("settleShares"), [7n, shown, [6000, 4000]]],
    ["drawReferees", move("drawReferees", { segment: 3 }), [7n, 3]],
    ["resolve", move("resolve", { segment: 3 }), [7n, 3]],
    ["resolve", move("resolve", { segment: 0 }), [7n, 0]],
    ["evict", move("evict", { slot: 1 }), [7n, 1n]],
    ["evict", move("evict", { slot: 0 }), [7n, 0n]],
  ])("%s is what the market decodes: %j", (name, one, args) => {
    expect(decoded(moveCall(one, view))).toEqual([name, ...args]);
  });

  it.each([
    ["shares that no lead has claimed", move("settleShares"), { ...view, slots: [] }],
    ["a dispute of no segment", move("resolve"), view],
    ["referees of no segment", move("drawReferees"), view],
    ["the silence of no slot", move("evict"), view],
    ["what only agents do", move("submit"), view],
  ])("is not made for %s", (_, one, of) => {
    expect(moveCall(one, of)).toBeNull();
  });
});

describe("a challenge", () => {
  const proof: StateProof = { segment: 2, claim, state: word("ee"), proof: [word("01"), word("02")] };

  it("shows the claim, the state that it has there, and the proof of that", () => {
    expect(decoded(wrongCall(7, 2, proof))).toEqual([
      "challenge",
      7n,
      2,
      shown,
      word("ee"),
      [word("01"), word("02")],
    ]);
  });

  it("of the segment that was chosen, whatever the server answers about", () => {
    expect(decoded(wrongCall(7, 4, proof))[2]).toBe(4);
  });

  it("of what is not served names the segment", () => {
    expect(decoded(unservedCall(7, 2))).toEqual(["challengeUnserved", 7n, 2]);
  });
});
