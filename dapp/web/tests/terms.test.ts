import { decodeFunctionData } from "viem";
import { describe, expect, it } from "vitest";
import type { MarketParams, TermsDocument } from "~/api/types";
import { marketAbi } from "~/protocol/abi";
import { escrowOf, postData, problemsOf, termsStruct } from "~/protocol/terms";

const TENTH = "100000000000000000";
const HUNDREDTH = "10000000000000000";

const terms: TermsDocument = {
  manifest: `0x${"11".repeat(32)}`,
  env_class: `0x${"22".repeat(32)}`,
  allow_list: `0x${"00".repeat(32)}`,
  policy: "audit",
  slots: 2,
  quorum: 1,
  audits: 2,
  min_audits: 2,
  shares_agreed: false,
  min_settled: 0,
  reward: TENTH,
  stake: TENTH,
  audit_fee: HUNDREDTH,
  segments: 12,
  target: 0,
  tolerance: 0,
  join_for: 120,
  train_for: 900,
  audit_for: 600,
  answer_for: 120,
  challenge_for: 5,
};

const params: MarketParams = {
  id: 0,
  seat_bond: TENTH,
  unbond_for: 60,
  fault_bps: 2000,
  finder_bps: 5000,
  requester_bps: 3000,
  referees: 3,
  escalation: 5,
  draw_delay: 1,
  min_window: 1,
};

describe("terms", () => {
  it("lock the rewards of all slots and the fees of all audits (rule T1)", () => {
    expect(escrowOf(terms)).toBe(220_000_000_000_000_000n);
  });

  it("are the argument of the call that is signed", () => {
    const call = decodeFunctionData({ abi: marketAbi, data: postData(terms) });
    expect(call.functionName).toBe("post");
    expect(call.args?.[0]).toEqual(termsStruct(terms));
    expect(termsStruct(terms)).toMatchObject({ policy: 1, reward: 10n ** 17n, joinFor: 120, minAudits: 2 });
  });

  it("that are good have no problem", () => {
    expect(problemsOf(terms, params)).toEqual([]);
  });

  it.each<[string, Partial<TermsDocument>, keyof TermsDocument]>([
    ["no worker", { slots: 0 }, "slots"],
    ["too many audits", { audits: 16 }, "audits"],
    ["more audits demanded than paid for", { min_audits: 3 }, "min_audits"],
    ["no reward", { reward: "0" }, "reward"],
    ["a fee below a hundredth of the bond", { audit_fee: "1" }, "audit_fee"],
    ["a fee that the bond cannot cover", { audit_fee: TENTH }, "audit_fee"],
    ["a stake that pays no referees", { stake: "1" }, "stake"],
    ["an even number of evaluators", { policy: "score", segments: 0 }, "audits"],
    ["no time to train", { train_for: 0 }, "train_for"],
    ["a year to answer", { answer_for: 365 * 86_400 }, "answer_for"],
  ])("with %s are refused before anybody signs", (_, changes, field) => {
    const found = problemsOf({ ...terms, ...changes }, params).map((problem) => problem.field);
    expect(found).toContain(field);
  });
});
