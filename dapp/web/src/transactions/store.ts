/** Transactions of this browser, kept through reloads until they are final and somebody has seen them. */

import { type Call, isSameCall, type Taker } from "~/transactions/replaced";

export type Stage = "signing" | "sent" | "mined" | "final" | "failed" | "rejected" | "lost";

export interface Tracked {
  id: string;
  chainId: number;
  account: string;
  title: string;
  kind: string;
  task: number | null;
  draft: string | null;
  stage: Stage;
  hash: `0x${string}` | null;
  block: number | null;
  confirmations: number;
  error: string | null;
  at: number;
  /** Its place among those of the account, once the chain has said it. */
  nonce?: number | null;
  /** What it does; those of an older page have none. */
  call?: Call;
}

const KEY = "trainyard.transactions";
const MOST = 30;

export interface TextStore {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
}

/** What a reload leaves of each: a wallet that was open is not connected to the page any more. */
export function restored(text: string | null): Tracked[] {
  let found: unknown;
  try {
    found = JSON.parse(text ?? "[]");
  } catch {
    return [];
  }
  if (!Array.isArray(found)) return [];
  return found
    .filter((one): one is Tracked => typeof one?.id === "string" && typeof one?.stage === "string")
    .map((one) =>
      one.stage === "signing"
        ? {
            ...one,
            stage: "lost",
            error:
              "The page was loaded again while your wallet was open. If you signed, it shows in the market soon; if not, nothing was sent.",
          }
        : one,
    );
}

export class TransactionStore {
  #items: readonly Tracked[];
  readonly #listeners = new Set<() => void>();
  readonly #storage: TextStore;

  constructor(storage: TextStore) {
    this.#storage = storage;
    this.#items = restored(storage.getItem(KEY));
  }

  get items(): readonly Tracked[] {
    return this.#items;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  add(item: Tracked): void {
    this.#write([item, ...this.#items].slice(0, MOST));
  }

  change(id: string, changes: Partial<Tracked>): void {
    if (!this.#items.some((one) => one.id === id)) return;
    this.#write(this.#items.map((one) => (one.id === id ? { ...one, ...changes } : one)));
  }

  remove(id: string): void {
    this.#write(this.#items.filter((one) => one.id !== id));
  }

  #write(items: readonly Tracked[]): void {
    this.#items = items;
    try {
      this.#storage.setItem(KEY, JSON.stringify(items));
    } catch {
      // Storage is full or blocked: it still works until the next reload.
    }
    for (const listener of this.#listeners) listener();
  }
}

const FORGOTTEN_AFTER_MS = 15 * 60_000;

/** What became of a transaction that is in no block; null while it may still come into one. */
export function fateOf(found: {
  /** Whether the node has it waiting. */
  isKnown: boolean;
  ageMs: number;
}): Partial<Tracked> | null {
  if (!found.isKnown && found.ageMs > FORGOTTEN_AFTER_MS)
    return {
      stage: "lost",
      error:
        "No node has it waiting any more, and it is in no block. See in your wallet whether it was sent; if it was not, send it again.",
    };
  return null;
}

/**
 * What became of a transaction whose nonce is used, by what used it; null where that was itself.
 *
 * INVARIANT: only another call in its place lets it be called void, else the same would be paid for twice.
 */
export function fateOfReplaced(
  item: Pick<Tracked, "hash" | "call">,
  taker: Taker | null,
): Partial<Tracked> | null {
  if (taker && taker.hash === item.hash) return null;
  if (!taker || !item.call)
    return {
      stage: "lost",
      error:
        "Another transaction of yours took its place, and the page cannot see what it did. If your wallet sped this one up, it counts: look at your account before you send it again.",
    };
  if (isSameCall(item.call, taker.call)) return { hash: taker.hash };
  return {
    stage: "lost",
    error: "Your wallet sent another transaction in its place. This one never counts.",
  };
}

export function isPending(stage: Stage): boolean {
  return stage === "signing" || stage === "sent" || stage === "mined";
}
