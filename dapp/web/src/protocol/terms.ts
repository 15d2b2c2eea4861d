/** The terms of a task: what the chain is asked for, and why it would refuse. */

import { encodeFunctionData } from "viem";
import type { MarketParams, TermsDocument } from "~/api/types";
import { marketAbi } from "~/protocol/abi";
import { POLICIES, type Policy } from "~/protocol/states";
import { formatAmount } from "~/protocol/units";

const MOST_SLOTS = 32;
const MOST_SEATS = 15;
const DAY = 86_400;

export function isScored(policy: Policy): boolean {
  return policy === "score" || policy === "contest";
}

/** The terms as the contract's struct, as viem takes it. */
export function termsStruct(terms: TermsDocument) {
  return {
    manifest: terms.manifest,
    envClass: terms.env_class,
    allowList: terms.allow_list,
    policy: POLICIES.indexOf(terms.policy),
    slots: terms.slots,
    quorum: terms.quorum,
    audits: terms.audits,
    minAudits: terms.min_audits,
    sharesAgreed: terms.shares_agreed,
    minSettled: terms.min_settled,
    reward: BigInt(terms.reward),
    stake: BigInt(terms.stake),
    auditFee: BigInt(terms.audit_fee),
    segments: terms.segments,
    target: terms.target,
    tolerance: terms.tolerance,
    joinFor: terms.join_for,
    trainFor: terms.train_for,
    auditFor: terms.audit_for,
    answerFor: terms.answer_for,
    challengeFor: terms.challenge_for,
  } as const;
}

/** The call that posts these terms. The page makes it by itself, so that nobody else chooses what is signed. */
export function postData(terms: TermsDocument): `0x${string}` {
  return encodeFunctionData({ abi: marketAbi, functionName: "post", args: [termsStruct(terms)] });
}

/** What posting locks: the most that the task can cost, since all else comes back. */
export function escrowOf(terms: Pick<TermsDocument, "reward" | "slots" | "audit_fee" | "audits">): bigint {
  return BigInt(terms.reward) * BigInt(terms.slots) + BigInt(terms.audit_fee) * BigInt(terms.audits);
}

export interface Problem {
  field: keyof TermsDocument;
  text: string;
}

/** Why the market would refuse, before anybody is asked to sign. The contract has the last word. */
export function problemsOf(terms: TermsDocument, params: MarketParams): Problem[] {
  const found: Problem[] = [];
  const say = (field: keyof TermsDocument, text: string) => found.push({ field, text });
  const { policy } = terms;
  if (terms.slots < 1 || terms.slots > MOST_SLOTS) say("slots", `A task has 1 to ${MOST_SLOTS} workers.`);
  if (terms.audits > MOST_SEATS) say("audits", `At most ${MOST_SEATS} audits can be drawn.`);
  if (isScored(policy) && terms.audits % 2 === 0)
    say("audits", "A median needs an odd number of evaluators.");
  if (terms.min_audits > terms.audits) say("min_audits", "No more audits can be demanded than are paid for.");
  if (BigInt(terms.reward) === 0n) say("reward", "Nobody works for nothing: offer a reward.");
  feeProblems(terms, params, say);
  const least = params.min_window;
  const spans: [keyof TermsDocument, number, number, number][] = [
    ["join_for", terms.join_for, 1, 365 * DAY],
    ["train_for", terms.train_for, least, 365 * DAY],
    ["audit_for", terms.audit_for, least, 30 * DAY],
    ["answer_for", terms.answer_for, least, 7 * DAY],
    ["challenge_for", terms.challenge_for, 0, 30 * DAY],
  ];
  for (const [field, value, from, to] of spans) {
    if (!Number.isInteger(value) || value < from || value > to) {
      say(field, `This takes ${from} to ${to} seconds.`);
    }
  }
  return found;
}

function feeProblems(
  terms: TermsDocument,
  params: MarketParams,
  say: (field: keyof TermsDocument, text: string) => void,
): void {
  if (terms.policy === "replicate") return;
  const [fee, bond, stake] = [BigInt(terms.audit_fee), BigInt(params.seat_bond), BigInt(terms.stake)];
  const least = (bond + 99n) / 100n;
  if (fee < least) say("audit_fee", `An audit is paid at least ${formatAmount(least)}.`);
  if (terms.policy !== "audit") return;
  const committees = BigInt(params.referees + params.escalation);
  const cost = committees * fee;
  if (cost > bond) say("audit_fee", `An audit is paid at most ${formatAmount(bond / committees)} here.`);
  const quorum = BigInt(Math.max(1, terms.quorum));
  if (stake * quorum < cost) {
    say(
      "stake",
      `The stakes must cover two committees of referees: at least ${formatAmount((cost + quorum - 1n) / quorum)}.`,
    );
  }
}
