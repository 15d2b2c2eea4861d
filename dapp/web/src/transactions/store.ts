/** Transactions of this browser, kept through reloads until they are final and somebody has seen them. */

import { type Kept, keptIn, merged, textOf } from "~/transactions/merging";
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

export const KEY = "trainyard.transactions";

export interface TextStore {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
}

/** What a reload leaves of each: a wallet that was open is not connected to the page any more. */
export function restored(text: string | null): Tracked[] {
  return keptIn(text).items.map((one) =>
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

/** One list for all tabs of this browser: what each writes is merged with what the others wrote. */
export class TransactionStore {
  #kept: Kept;
  /** Those for which this very page opened the wallet: no other tab knows better. */
  readonly #opened = new Set<string>();
  readonly #listeners = new Set<() => void>();
  readonly #storage: TextStore;

  constructor(storage: TextStore) {
    this.#storage = storage;
    const text = storage.getItem(KEY);
    const { items, gone } = keptIn(text);
    this.#kept = { items: restored(text), gone };
    // What became of it is known here, and other tabs would wait for a wallet that nobody has open.
    if (items.some((one) => one.stage === "signing")) this.#write(this.#kept);
  }

  get items(): readonly Tracked[] {
    return this.#kept.items;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  add(item: Tracked): void {
    this.#opened.add(item.id);
    const { items, gone } = this.#read();
    this.#write({ items: [item, ...items], gone });
  }

  change(id: string, changes: Partial<Tracked>): void {
    const { items, gone } = this.#read();
    const one = items.find((other) => other.id === id);
    if (!one) return;
    // Another tab saw its end while this one still asked the node.
    const isLate = one.hash && !isPending(one.stage) && changes.stage && isPending(changes.stage);
    const next = isLate ? one : { ...one, ...changes };
    this.#write({ items: items.map((other) => (other === one ? next : other)), gone });
  }

  remove(id: string): void {
    const { items, gone } = this.#read();
    if (gone.includes(id)) return;
    this.#write({ items: items.filter((one) => one.id !== id), gone: [id, ...gone] });
  }

  /** Another tab has written. */
  follow(): void {
    const stored = keptIn(this.#storage.getItem(KEY));
    const both = this.#read();
    // Two tabs that write at once may miss each other: what was sent must not get lost on the way, nor be
    // called lost by a page that was loaded while the wallet is open here.
    const isMissed = both.items.some((one) => {
      const other = stored.items.find(({ id }) => id === one.id);
      return !other || (one.hash && !other.hash) || (one.stage === "signing" && other.stage === "lost");
    });
    if (isMissed) this.#write({ ...both, items: both.items.map((one) => this.#asserted(one)) });
    else this.#show(both);
  }

  /** Said again and later, where it waits for this page's own wallet. */
  #asserted(item: Tracked): Tracked {
    const isOpen = item.stage === "signing" && this.#opened.has(item.id);
    return isOpen ? { ...item, at: Math.max(Date.now(), item.at + 1) } : item;
  }

  #read(): Kept {
    return merged(this.#kept, keptIn(this.#storage.getItem(KEY)), this.#opened);
  }

  #write(kept: Kept): void {
    const bounded = merged(kept, { items: [], gone: [] });
    try {
      this.#storage.setItem(KEY, textOf(bounded));
    } catch {
      // Storage is full or blocked: it still works until the next reload.
    }
    this.#show(bounded);
  }

  #show(kept: Kept): void {
    this.#kept = kept;
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
