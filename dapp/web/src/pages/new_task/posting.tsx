/** While the task is on its way to the chain, also after a reload. */

import { useConfig } from "~/api/queries";
import { Notice } from "~/components/basics";
import { TransactionTag } from "~/components/chain";
import type { Tracked } from "~/transactions/store";

export function Posting({ item }: { item: Tracked }) {
  const { confirmations } = useConfig();
  const text = {
    signing: "Confirm the transaction in your wallet.",
    sent: "It was sent and waits for a block.",
    mined: `It is in a block: ${Math.min(item.confirmations, confirmations)} of ${confirmations} confirmations.`,
  }[item.stage as "signing" | "sent" | "mined"];
  return (
    <Notice
      tone="info"
      title="Your task is being posted"
      action={item.hash && <TransactionTag hash={item.hash} />}
    >
      {text} This page goes on to the task by itself.
    </Notice>
  );
}
