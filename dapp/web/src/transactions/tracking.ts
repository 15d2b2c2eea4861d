/** Follows what was sent until it is final, through reverts, reloads and reorgs. */

import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { type Client, decodeEventLog, type Hash, type TransactionReceipt } from "viem";
import {
  call,
  getBlockNumber,
  getTransaction,
  getTransactionCount,
  getTransactionReceipt,
} from "viem/actions";
import { useClient } from "wagmi";
import { forgetTask, useConfig } from "~/api/queries";
import { bringBack, dropPosted, loadDraft, setDraftAside } from "~/drafts/draft";
import { marketAbi } from "~/protocol/abi";
import { explainFailure } from "~/protocol/refusals";
import { navigate } from "~/router";
import { takerOf } from "~/transactions/replaced";
import {
  fateOf,
  fateOfReplaced,
  isPending,
  KEY,
  type Stage,
  type Tracked,
  TransactionStore,
} from "~/transactions/store";

export const transactions = new TransactionStore(
  typeof localStorage === "undefined" ? { getItem: () => null, setItem: () => {} } : localStorage,
);

if (typeof window !== "undefined") {
  window.addEventListener("storage", (event) => event.key === KEY && transactions.follow());
}

const LOOK_EVERY_MS = 1_000;

export function useTransactions(): readonly Tracked[] {
  return useSyncExternalStore(transactions.subscribe, () => transactions.items);
}

/** The number of the task that a receipt of `post` tells of. */
export function postedTask(receipt: Pick<TransactionReceipt, "logs">): number | null {
  for (const log of receipt.logs) {
    try {
      const event = decodeEventLog({ abi: marketAbi, data: log.data, topics: log.topics });
      if (event.eventName === "TaskPosted") return Number(event.args.id);
    } catch {
      // An event of another kind.
    }
  }
  return null;
}

/** Mounted once, at the top of the page. */
export function useTracking(): void {
  const { chain_id: chainId, confirmations: needed, currency } = useConfig();
  const client = useClient({ chainId });
  const queries = useQueryClient();
  const items = useTransactions();
  const isWatching = items.some((one) => one.chainId === chainId && one.hash && isPending(one.stage));
  useEffect(() => {
    if (!isWatching || !client) return;
    let isOver = false;
    let timer: ReturnType<typeof setTimeout>;
    const look = async () => {
      try {
        const head = Number(await getBlockNumber(client, { cacheTime: 0 }));
        for (const item of transactions.items) {
          if (isOver || item.chainId !== chainId || !item.hash || !isPending(item.stage)) continue;
          const changes = await progressOf(client, item, item.hash, head, needed, currency.symbol);
          if (!changes) continue;
          transactions.change(item.id, changes);
          if (item.draft && changes.stage) followDraft(item.draft, changes.stage, changes.task ?? item.task);
          if (changes.stage === "mined" || changes.stage === "failed" || changes.stage === "final") {
            const task = changes.task ?? item.task;
            if (task) forgetTask(queries, task);
            void queries.invalidateQueries({ queryKey: ["account"] });
            void queries.invalidateQueries({ queryKey: ["balance"] });
          }
        }
      } catch {
        // The node is away for a moment: the next look will tell.
      }
      if (!isOver) timer = setTimeout(look, LOOK_EVERY_MS);
    };
    void look();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [isWatching, client, chainId, needed, queries, currency.symbol]);
}

/** Posted is posted: who comes back to the form later is not to post it once more, unless a reorg undoes it. */
function followDraft(draft: string, stage: Stage, task: number | null): void {
  if (stage === "failed" || stage === "lost") bringBack(localStorage, draft);
  if (stage !== "mined" && stage !== "final") return;
  // Here and not in the form: that may still be loading, and would then begin an empty one.
  const isShown = location.pathname === "/new" && loadDraft(localStorage).id === draft;
  setDraftAside(localStorage, draft);
  if (isShown && task) navigate(`/tasks/${task}`, { replace: true });
  if (stage === "final") dropPosted(localStorage, draft);
}

/** What is new about a transaction that was sent; null where nothing is. */
export async function progressOf(
  client: Client,
  item: Tracked,
  hash: Hash,
  head: number,
  needed: number,
  symbol: string,
): Promise<Partial<Tracked> | null> {
  const receipt = await getTransactionReceipt(client, { hash }).catch(() => null);
  if (!receipt) {
    // It was in a block that a reorg took back: it waits again.
    if (item.stage === "mined") return { stage: "sent", block: null, confirmations: 0, at: Date.now() };
    return whileWaiting(client, item, hash);
  }
  const block = Number(receipt.blockNumber);
  if (receipt.status === "reverted") {
    return { stage: "failed", block, error: await reasonOf(client, hash, receipt, symbol) };
  }
  const confirmations = Math.max(1, head - block + 1);
  const stage = confirmations >= needed ? "final" : "mined";
  if (stage === item.stage && confirmations === item.confirmations && block === item.block) return null;
  const task = item.kind === "post" ? (item.task ?? postedTask(receipt)) : item.task;
  return { stage, block, confirmations, task };
}

async function whileWaiting(client: Client, item: Tracked, hash: Hash): Promise<Partial<Tracked> | null> {
  const sent = await getTransaction(client, { hash }).catch(() => null);
  const nonce = sent?.nonce ?? item.nonce ?? null;
  const address = item.account as `0x${string}`;
  const used = await getTransactionCount(client, { address, blockTag: "latest" });
  const fate =
    nonce !== null && used > nonce
      ? fateOfReplaced(item, await takerOf(client, address, nonce))
      : fateOf({ isKnown: sent !== null, ageMs: Date.now() - item.at });
  // A block may have come between the questions.
  const receipt = fate && (await getTransactionReceipt(client, { hash }).catch(() => null));
  if (fate && !receipt) return { ...fate, nonce };
  return nonce === (item.nonce ?? null) ? null : { nonce };
}

/** The chain keeps no reasons, so the call is made once more on the state that it met. */
async function reasonOf(
  client: Client,
  hash: Hash,
  receipt: TransactionReceipt,
  symbol: string,
): Promise<string> {
  try {
    const sent = await getTransaction(client, { hash });
    await call(client, {
      account: sent.from,
      to: sent.to,
      data: sent.input,
      value: sent.value,
      blockNumber: receipt.blockNumber - 1n,
    });
  } catch (error) {
    return explainFailure(error, symbol);
  }
  return "The market refused: something changed between signing and the block. Look at the task and try again.";
}
