/** The market's nouns, in the order of `contracts/interfaces/IMarketTypes.sol`. */

export const TASK_STATES = [
  "none",
  "open",
  "running",
  "revealing",
  "submitted",
  "auditing",
  "opening",
  "window",
  "disputed",
  "settled",
  "failed",
  "cancelled",
] as const;
export type TaskState = (typeof TASK_STATES)[number];

export const POLICIES = ["replicate", "audit", "score", "contest"] as const;
export type Policy = (typeof POLICIES)[number];

export const SEAT_STATES = ["none", "drawn", "committed", "revealed", "closed"] as const;
export const DISPUTE_STATES = [
  "none",
  "unserved",
  "called",
  "hearing",
  "ruling",
  "upheld",
  "rejected",
  "dismissed",
  "inconclusive",
  "void",
] as const;

export type Tone = "neutral" | "info" | "good" | "warn" | "bad";

interface Look {
  label: string;
  tone: Tone;
  means: string;
}

const LOOKS: Record<TaskState, Look> = {
  none: { label: "Unknown", tone: "neutral", means: "There is no such task." },
  open: { label: "Open", tone: "warn", means: "Slots are being filled." },
  running: { label: "Training", tone: "info", means: "All slots are filled and the workers train." },
  revealing: { label: "Revealing", tone: "info", means: "Commitments are in and are being revealed." },
  submitted: { label: "Submitted", tone: "info", means: "The claim is fixed and waits for the draw." },
  auditing: { label: "Auditing", tone: "info", means: "Drawn auditors recompute their segments, blind." },
  opening: { label: "Opening", tone: "info", means: "The workers must show the states that were drawn." },
  window: { label: "Window", tone: "info", means: "Answers are revealed; anyone may still challenge." },
  disputed: { label: "Disputed", tone: "bad", means: "Referees recompute a disputed segment." },
  settled: { label: "Settled", tone: "good", means: "The result was found good and everyone is paid." },
  failed: { label: "Failed", tone: "bad", means: "The task ended without a result that is paid for." },
  cancelled: {
    label: "Cancelled",
    tone: "neutral",
    means: "The task was taken back; everyone was refunded.",
  },
};

export function lookOf(state: string): Look {
  return LOOKS[state as TaskState] ?? { label: state, tone: "neutral", means: "" };
}

export function isOver(state: string): boolean {
  return state === "settled" || state === "failed" || state === "cancelled";
}

const FAILURES: Record<string, string> = {
  no_quorum: "too few workers answered alike, or in time",
  fraud: "referees found the workers' claim wrong",
  withheld: "the workers did not show what they had claimed",
  inconclusive: "two committees of referees found no majority",
  unaudited: "fewer auditors could be drawn than were demanded",
  below_target: "the score missed its target",
};

export function failureText(failure: string | null | undefined): string {
  return failure ? (FAILURES[failure] ?? failure.replaceAll("_", " ")) : "it has failed";
}

export const POLICY_WORDS: Record<Policy, { name: string; short: string }> = {
  audit: {
    name: "Audit",
    short: "Workers share one run; drawn auditors recompute drawn segments of it, blind.",
  },
  replicate: {
    name: "Replicate",
    short: "Every worker trains the whole task alone; the result that most agree on wins.",
  },
  score: {
    name: "Score",
    short: "Drawn evaluators measure the result; it is paid for if the median reaches your target.",
  },
  contest: {
    name: "Contest",
    short: "Every worker enters a result of its own; the best one takes all rewards.",
  },
};
