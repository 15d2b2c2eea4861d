/** The list of transactions as storage has it, and how two tabs' lists become one. */

import type { Stage, Tracked } from "~/transactions/store";

export interface Kept {
  readonly items: readonly Tracked[];
  /** Ids of those that were dismissed, the latest first: no tab brings them back. */
  readonly gone: readonly string[];
}

const MOST = 30;
const MOST_GONE = 60;
const GONE = "gone";

export function keptIn(text: string | null): Kept {
  let found: unknown;
  try {
    found = JSON.parse(text ?? "[]");
  } catch {
    found = [];
  }
  const all = (Array.isArray(found) ? found : []).filter(
    (one) => typeof one?.id === "string" && typeof one?.stage === "string",
  );
  return {
    items: all.filter((one): one is Tracked => one.stage !== GONE),
    gone: all.filter((one) => one.stage === GONE).map((one) => one.id),
  };
}

export function textOf({ items, gone }: Kept): string {
  return JSON.stringify([...items, ...gone.map((id) => ({ id, stage: GONE }))]);
}

/** Both lists, the latest first, each transaction once; `opened` are those that wait for this page's own wallet. */
export function merged(mine: Kept, stored: Kept, opened: ReadonlySet<string> = new Set()): Kept {
  const gone = [...new Set([...mine.gone, ...stored.gone])].slice(0, MOST_GONE);
  const others = new Map(stored.items.map((one) => [one.id, one]));
  const items = mine.items.map((one) => {
    const other = others.get(one.id);
    others.delete(one.id);
    if (!other || (one.stage === "signing" && opened.has(one.id))) return one;
    return isFurther(one, other) ? one : other;
  });
  return {
    items: [...items, ...others.values()]
      .filter((one) => !gone.includes(one.id))
      .sort((one, other) => other.at - one.at)
      .slice(0, MOST),
    gone,
  };
}

const RANKS: Record<Stage, number> = {
  signing: 0,
  sent: 2,
  mined: 3,
  final: 4,
  failed: 4,
  rejected: 4,
  lost: 4,
};

/** Of two states of one transaction. */
function isFurther(one: Tracked, other: Tracked): boolean {
  const isDoubted =
    (one.stage === "signing" && isGuess(other)) || (isGuess(one) && other.stage === "signing");
  // The page that opened the wallet says later than the guess that it still waits.
  if (isDoubted && one.at !== other.at) return one.at > other.at;
  return rankOf(one) > rankOf(other);
}

/** Lost is what a page takes a wallet's answer for that was open when it was loaded, maybe in another tab. */
function isGuess({ stage, hash }: Tracked): boolean {
  return stage === "lost" && hash === null;
}

function rankOf(item: Tracked): number {
  return isGuess(item) ? 1 : RANKS[item.stage];
}
