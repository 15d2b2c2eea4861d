/**
 * The way from the claim on the chain to the last state of the run, walked by this browser: the chain has the digest
 * of the claim, the claim the hash of the result and the root of the trace, the trace the hash of each state.
 */

import { bytesToHex, concat, type Hex, hexToBytes, keccak256 } from "viem";
import type { Claim, Task } from "~/api/types";
import { cidText, rawCid, sha256 } from "~/content/cid";
import { fetchVerified } from "~/content/download";

export class ProofError extends Error {
  override name = "ProofError";
}

/** What the market itself has of a task: of the slot that leads, the digest of its claim. */
export interface OnChain {
  manifest: Hex;
  segments: number;
  digest: Hex;
}

export interface Way {
  /** Below this CID lies the whole run. */
  run: string;
  /** The hashes of all states, from the first to the last. */
  states: Hex[];
}

export type Fetch = (path: string) => Promise<Uint8Array>;

const [LEAF, NODE] = ["0x00", "0x01"] as const;
const EMPTY: Hex = `0x${"00".repeat(32)}`;
const HASH = /^[0-9a-f]{64}$/;
const DIGITS = 6;

/** As the contract hashes it: the three words one after the other. */
export function claimDigest(claim: Claim): Hex {
  return keccak256(concat([claim.result, claim.root, claim.shares_digest]));
}

/** The root of a trace, exactly as `contracts/libraries/Trace.sol` has it. */
export function traceRoot(states: readonly Hex[]): Hex {
  let level = states.map((state) => keccak256(concat([LEAF, state])));
  const width = 2 ** Math.ceil(Math.log2(level.length));
  while (level.length < width) level.push(EMPTY);
  while (level.length > 1) {
    const above: Hex[] = [];
    for (let at = 0; at < level.length; at += 2) {
      above.push(keccak256(concat([NODE, level[at] as Hex, level[at + 1] as Hex])));
    }
    level = above;
  }
  return level[0] as Hex;
}

export function leadClaim(view: Task): Claim | null {
  return view.slots.find((slot) => slot.is_lead)?.claim ?? null;
}

/** Throws where two of them do not fit; `said` hears of each part that does. */
export async function walk(
  view: Task,
  chain: OnChain,
  said: (text: string) => void,
  fetchFile: Fetch = fetchVerified,
): Promise<Way> {
  const claim = leadClaim(view);
  if (!claim) throw new ProofError("The workers have claimed nothing that could be checked.");
  if (chain.manifest !== view.task.manifest) {
    throw new ProofError("The market has another manifest for this task than this server says.");
  }
  if (chain.digest !== claimDigest(claim)) {
    throw new ProofError("The market has another claim for this task than this server says.");
  }
  said("The market holds the digest of this claim, and the manifest of this task.");
  const result = parseResult(await fetchFile(cidText(rawCid(hexToBytes(claim.result)))), view, claim);
  said(
    "The result has the hash that stands in the claim, and names the claim's trace and the task's manifest.",
  );
  const states = parseTrace(await fetchFile(`${result.run}/trace.json`));
  if (states.length !== chain.segments + 1) {
    throw new ProofError(
      `The trace has ${states.length} states, and the task asks for ${chain.segments + 1}.`,
    );
  }
  if (traceRoot(states) !== claim.root) {
    throw new ProofError("The published trace does not have the root that was claimed.");
  }
  said(`The hashes of all ${states.length} states of the run make up the root that stands in the claim.`);
  return { run: result.run, states };
}

/** Where the last state lies. */
export function lastState(way: Way): string {
  return `${way.run}/states/${String(way.states.length - 1).padStart(DIGITS, "0")}.safetensors`;
}

export async function checkLastState(way: Way, bytes: Uint8Array): Promise<void> {
  if (bytesToHex(await sha256(bytes)) !== way.states.at(-1)) {
    throw new ProofError("These weights are not those that the trace of the claim ends with.");
  }
}

function parseResult(bytes: Uint8Array, view: Task, claim: Claim): { run: string } {
  const { manifest, root, run } = documentOf(bytes, "result");
  if (`0x${manifest}` !== view.task.manifest || `0x${root}` !== claim.root || typeof run !== "string") {
    throw new ProofError("The result is of another task or of another trace.");
  }
  return { run };
}

function parseTrace(bytes: Uint8Array): Hex[] {
  const { states } = documentOf(bytes, "trace");
  if (!Array.isArray(states) || !states.every((one) => typeof one === "string" && HASH.test(one))) {
    throw new ProofError("The published trace is no list of hashes.");
  }
  return states.map((state: string): Hex => `0x${state}`);
}

function documentOf(bytes: Uint8Array, what: string): Record<string, unknown> {
  try {
    const found: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    if (found && typeof found === "object") return found as Record<string, unknown>;
  } catch {
    // Told below.
  }
  throw new ProofError(`The published ${what} cannot be read.`);
}
