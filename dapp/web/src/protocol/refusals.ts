/** Why the market refused, as a sentence. The same reasons as `trainyard.chain.reasons`. */

import { type Abi, decodeErrorResult } from "viem";
import { marketAbi } from "~/protocol/abi";
import { DISPUTE_STATES, lookOf, POLICIES, SEAT_STATES, TASK_STATES } from "~/protocol/states";
import { formatAmount, formatMoment, shortAddress, shortHash } from "~/protocol/units";

type Args = Record<string, string>;

const SENTENCES: Record<string, (a: Args) => string> = {
  MarketAlreadyAnswered: (a) => `Slot ${a.slot} of task ${a.id} has answered already.`,
  MarketAlreadyPinged: (a) => `Slot ${a.slot} was asked already and has time until ${a.pongBy}.`,
  MarketAlreadyRegistered: (a) => `${a.account} is registered already.`,
  MarketBondInUse: (a) => `Seats still hold ${a.locked} of the bond.`,
  MarketBondTooLow: (a) => `A bond of ${a.bond} is too low: it takes ${a.minimum}.`,
  MarketConflict: (a) => `${a.account} already has a part in task ${a.id} that rules this one out.`,
  MarketDrawPending: (a) => `The draw of task ${a.id} waits for block ${a.drawBlock}. Try again in a moment.`,
  MarketInsufficientCredit: (a) => `The account's credit is ${a.credit}, and this needs ${a.needed}.`,
  MarketInvalidParams: (a) => `The market's parameters cannot work: ${a.field}.`,
  MarketInvalidTerms: (a) => `The market refuses these terms because of “${a.field}”.`,
  MarketNoCode: (a) => `There is no contract at ${a.part}.`,
  MarketNoSuchSegment: (a) => `Task ${a.id} has no segment ${a.segment}.`,
  MarketNoVacancy: (a) => `Task ${a.id} has no free slot.`,
  MarketNotAllowed: (a) => `${a.account} is not on the list of task ${a.id}.`,
  MarketNotParty: (a) => `${a.caller} is neither requester nor worker of task ${a.id}.`,
  MarketNotPinged: (a) => `Nobody asked slot ${a.slot} of task ${a.id} for a sign of life.`,
  MarketNotRegistered: (a) => `${a.account} is not registered as a worker.`,
  MarketNotRequester: (a) => `Only who posted task ${a.id} may do this, and that is not ${a.caller}.`,
  MarketNotRetired: (a) => `${a.account} has not retired.`,
  MarketNotSeatHolder: (a) => `${a.caller} does not hold seat ${a.seat} of task ${a.id}.`,
  MarketNotSlotHolder: (a) => `${a.caller} does not hold slot ${a.slot} of task ${a.id}.`,
  MarketNotToken: () => "The market's currency is the chain's own, which knows no permits.",
  MarketRecordTooShort: (a) =>
    `${a.account} has ${a.settled} settled tasks on record, and needs ${a.needed}.`,
  MarketSignatureExpired: (a) => `The signature was good until ${a.deadline}.`,
  MarketTokenTookMore: (a) => `The token took ${a.taken} where ${a.asked} was asked for.`,
  MarketTooEarly: (a) => `It is too early for task ${a.id}: this is possible from ${a.opensAt} on.`,
  MarketTooFewAuditors: (a) =>
    `Only ${a.available} auditors of this class are there, and the task demands ${a.needed}.`,
  MarketTooLate: (a) => `It is too late for task ${a.id}: the deadline was ${a.deadline}.`,
  MarketTransferFailed: (a) => `${a.amount} could not be sent to ${a.to}.`,
  MarketUnbonding: (a) => `The bond is held until ${a.until}.`,
  MarketUnexpectedDispute: (a) =>
    `The dispute about segment ${a.segment} is ${a.state}: this cannot be done now.`,
  MarketUnexpectedSeat: (a) => `Seat ${a.seat} of task ${a.id} is ${a.state}: this cannot be done now.`,
  MarketUnexpectedState: (a) => `Task ${a.id} is ${a.state}: this cannot be done now.`,
  MarketWrongAnswer: (a) => `The answer is not what seat ${a.seat} of task ${a.id} committed to.`,
  MarketWrongClaim: (a) => `This is not the claim of task ${a.id}.`,
  MarketWrongClass: (a) => `${a.account} is of class ${a.envClass}, and the task is for class ${a.needed}.`,
  MarketWrongLength: (a) => `${a.given} values were given where ${a.expected} belong.`,
  MarketWrongPolicy: (a) => `This is not done under the policy of task ${a.id}, which is ${a.policy}.`,
  MarketWrongProof: (a) => `The proof does not fit segment ${a.segment} of task ${a.id}.`,
  MarketWrongReveal: (a) => `This is not what slot ${a.index} of task ${a.id} committed to.`,
  MarketWrongShares: (a) => `These are not the shares that the slots of task ${a.id} agreed on.`,
  MarketWrongSignature: (a) => `The signature is not that of ${a.signer}.`,
  MarketWrongValue: (a) => `A value of ${a.sent} was sent where ${a.expected} belongs.`,
  MarketZeroCommitment: (a) => `The commitment for task ${a.id} is zero.`,
  MarketZeroDigest: () => "A digest is zero.",
  EnforcedPause: () => "The market takes no new tasks at present. Running ones go on, and withdrawing works.",
  Error: (a) => `${a["0"]}`,
};

const MONEY = new Set([
  "locked",
  "bond",
  "minimum",
  "credit",
  "needed",
  "amount",
  "sent",
  "expected",
  "taken",
  "asked",
]);
const COUNTS_IN = new Set(["MarketTooFewAuditors", "MarketRecordTooShort", "MarketWrongLength"]);
const MOMENTS = new Set(["pongBy", "opensAt", "deadline", "until"]);

/** The sentence behind the bytes of a revert. */
export function refusalText(data: `0x${string}`, symbol = "ETH"): string {
  let decoded: { errorName: string; args?: readonly unknown[] | undefined };
  try {
    decoded = decodeErrorResult({ abi: marketAbi as Abi, data });
  } catch {
    return `The market refused without a reason that this page knows (${shortHash(data)}).`;
  }
  const { errorName } = decoded;
  const entry = (marketAbi as Abi).find((one) => one.type === "error" && one.name === errorName);
  const inputs = entry && "inputs" in entry ? (entry.inputs ?? []) : [];
  const args: Args = {};
  (decoded.args ?? []).forEach((value, at) => {
    const name = inputs[at]?.name || String(at);
    args[name] = shown(errorName, name, value, symbol);
  });
  const tell = SENTENCES[errorName];
  if (tell) return tell(args);
  const values = Object.entries(args).map(([name, value]) => `${name} ${value}`);
  return `The market refused with ${errorName}(${values.join(", ")}).`;
}

function shown(error: string, name: string, value: unknown, symbol: string): string {
  if (name === "state" || name === "policy") return enumName(error, Number(value));
  if (name === "field") return ascii(String(value));
  if (typeof value === "bigint" && MOMENTS.has(name)) return formatMoment(Number(value));
  if (typeof value === "bigint" && MONEY.has(name) && !COUNTS_IN.has(error))
    return formatAmount(value, symbol);
  const text = String(value);
  if (/^0x[0-9a-fA-F]{40}$/.test(text)) return shortAddress(text);
  return text.startsWith("0x") ? shortHash(text) : text;
}

function enumName(error: string, code: number): string {
  if (error === "MarketUnexpectedDispute") return DISPUTE_STATES[code] ?? String(code);
  if (error === "MarketUnexpectedSeat") return SEAT_STATES[code] ?? String(code);
  if (error === "MarketWrongPolicy") return POLICIES[code] ?? String(code);
  return lookOf(TASK_STATES[code] ?? String(code)).label.toLowerCase();
}

/** The name of a field, which the contract gives as ASCII in a word. */
function ascii(word: string): string {
  const bytes = word.replace(/^0x/, "").match(/../g) ?? [];
  return bytes
    .map((byte) => Number.parseInt(byte, 16))
    .filter((code) => code > 31 && code < 127)
    .map((code) => String.fromCharCode(code))
    .join("");
}

/** The bytes of a revert somewhere in what a wallet or a node threw. */
export function revertData(error: unknown): `0x${string}` | null {
  const seen = new Set<unknown>();
  const walk = (value: unknown): `0x${string}` | null => {
    if (typeof value === "string") {
      const found = /^(?:"?Reverted )?"?(0x[0-9a-fA-F]{8,})"?$/.exec(value.trim());
      return found && (found[1]?.length ?? 0) % 2 === 0 ? (found[1] as `0x${string}`) : null;
    }
    if (typeof value !== "object" || value === null || seen.has(value)) return null;
    seen.add(value);
    const record = value as Record<string, unknown>;
    for (const key of ["data", "raw", "result", "error", "cause", "walk"]) {
      const found = key in record ? walk(record[key]) : null;
      if (found) return found;
    }
    return null;
  };
  return walk(error);
}

/** Whether the person said no, which is no fault of anything. */
export function isRejection(error: unknown): boolean {
  for (let at: unknown = error, depth = 0; at && depth < 8; depth += 1) {
    const { code, name, cause } = at as { code?: unknown; name?: unknown; cause?: unknown };
    if (code === 4001 || code === "ACTION_REJECTED" || name === "UserRejectedRequestError") return true;
    at = cause;
  }
  return false;
}

/** One sentence for whatever went wrong with a transaction. */
export function explainFailure(error: unknown, symbol = "ETH"): string {
  if (isRejection(error)) return "You declined in your wallet. Nothing was sent.";
  const data = revertData(error);
  if (data) return refusalText(data, symbol);
  const text = messageOf(error);
  if (/insufficient funds|exceeds the balance|doesn't have enough funds|not enough funds/i.test(text)) {
    return `The account has too little ${symbol} for the amount and the gas together.`;
  }
  if (/nonce/i.test(text)) return "The wallet used a transaction number that is taken. Try again.";
  if (/timed? ?out|fetch|network|failed to fetch/i.test(text))
    return "The chain's node did not answer. Try again.";
  return text ? text.slice(0, 240) : "Something went wrong that nothing more is known about.";
}

function messageOf(error: unknown): string {
  if (typeof error === "string") return error;
  const { shortMessage, details, message } = (error ?? {}) as Record<string, unknown>;
  const text = [shortMessage, details, message].find((one) => typeof one === "string" && one);
  return typeof text === "string" ? (text.split("\n")[0] ?? "") : "";
}
