/** Signing, sent, confirmations, final: at the edge of the page until it is over and seen. */

import { useEffect } from "react";
import { useConfig } from "~/api/queries";
import { TransactionTag } from "~/components/chain";
import { Icon } from "~/components/icons";
import { Link } from "~/router";
import { isPending, type Tracked } from "~/transactions/store";
import { transactions, useTracking, useTransactions } from "~/transactions/tracking";

const SHOWN = 3;
const LEAVES_AFTER_MS = 12_000;

export function Toasts() {
  useTracking();
  const { chain_id: chainId } = useConfig();
  const shown = useTransactions()
    .filter((one) => one.chainId === chainId)
    .slice(0, SHOWN);
  return (
    <section className="toasts" aria-label="Transactions" aria-live="polite">
      {shown.map((item) => (
        <Toast key={item.id} item={item} />
      ))}
    </section>
  );
}

function Toast({ item }: { item: Tracked }) {
  const { confirmations: needed } = useConfig();
  const { stage } = item;
  useEffect(() => {
    if (stage !== "final" && stage !== "rejected") return;
    const timer = setTimeout(() => transactions.remove(item.id), LEAVES_AFTER_MS);
    return () => clearTimeout(timer);
  }, [stage, item.id]);
  const isBad = stage === "failed" || stage === "lost";
  return (
    <div className="toast" data-stage={stage}>
      {isPending(stage) ? (
        <span className="spinner" aria-hidden="true" />
      ) : (
        <span className={stage === "final" ? "tone-good" : isBad ? "tone-bad" : "muted"}>
          <Icon name={stage === "final" ? "check" : isBad ? "alert" : "cross"} size={18} />
        </span>
      )}
      <div className="stack stack-s">
        <strong>{item.title}</strong>
        {item.error ? (
          <span className="small wrap-anywhere">{item.error}</span>
        ) : (
          <Steps item={item} needed={needed} />
        )}
        <div className="row small">
          {item.hash && <TransactionTag hash={item.hash} />}
          {item.task && <Link to={`/tasks/${item.task}`}>Open task {item.task}</Link>}
        </div>
      </div>
      <button
        type="button"
        className="icon-button icon-button-small"
        aria-label={`Dismiss: ${item.title}`}
        onClick={() => transactions.remove(item.id)}
      >
        <Icon name="cross" size={14} />
      </button>
    </div>
  );
}

function Steps({ item, needed }: { item: Tracked; needed: number }) {
  const order = ["signing", "sent", "mined", "final"] as const;
  const at = order.indexOf(item.stage as (typeof order)[number]);
  const count = Math.min(item.confirmations, needed);
  const labels = ["Sign in your wallet", "Sent", `${count} of ${needed} confirmations`, "Final"];
  return (
    <span className="toast-steps">
      {labels.map((label, step) => (
        <span
          key={order[step]}
          className={step < at || item.stage === "final" ? "is-done" : step === at ? "is-now" : ""}
        >
          {step > 0 && "→ "}
          {label}
        </span>
      ))}
    </span>
  );
}
