/** What it costs in one sentence, the check of everything, and only then the wallet. */

import { useMutation } from "@tanstack/react-query";
import { useEffect } from "react";
import { problemText, send } from "~/api/client";
import { useConfig } from "~/api/queries";
import type { Check, Preflight, Quote } from "~/api/types";
import { Button, Card, Notice, Skeleton } from "~/components/basics";
import { Amount, useAmount } from "~/components/chain";
import { useNow } from "~/components/clock";
import { Icon, type IconName } from "~/components/icons";
import type { Draft } from "~/drafts/draft";
import type { QuoteState } from "~/pages/new_task/use_quote";
import { escrowOf, postData, problemsOf } from "~/protocol/terms";
import { formatElapsed, formatMoment } from "~/protocol/units";
import { useSend } from "~/transactions/sending";
import { isPending } from "~/transactions/store";
import { useTransactions } from "~/transactions/tracking";
import { useBalance } from "~/wallet/balance";
import { useWallet } from "~/wallet/use_wallet";

export function Summary({
  draft,
  state,
  hasManifest,
}: {
  draft: Draft;
  state: QuoteState;
  hasManifest: boolean;
}) {
  const { quote } = state;
  return (
    <Card title="Before you sign">
      <div className="stack stack-m">
        {quote ? (
          <Priced draft={draft} quote={quote} isWorking={state.isWorking} />
        ) : state.quoteError ? (
          <Notice tone="bad" title="No price could be made">
            {problemText(state.quoteError)}
          </Notice>
        ) : hasManifest && state.isWorking ? (
          <Skeleton height="140px" />
        ) : (
          <p className="muted">
            {state.manifestError
              ? "Mend what does not fit in the training, and the price appears here."
              : "Choose a model and data. The price, the worst case and the refund rule appear here before anything is signed."}
          </p>
        )}
      </div>
    </Card>
  );
}

function Priced({ draft, quote, isWorking }: { draft: Draft; quote: Quote; isWorking: boolean }) {
  const config = useConfig();
  const amount = useAmount();
  const now = useNow(10_000);
  const wallet = useWallet();
  const { data: balance } = useBalance(wallet.address);
  const { terms } = quote;
  const joinBy = now + terms.join_for;
  const problems = config.params ? problemsOf(terms, config.params) : [];
  const check = useCheck(quote);
  const measured = check.preflight?.estimated_train_s ?? null;
  return (
    <>
      <p className="sentence" data-testid="cost-sentence">
        At most {amount(quote.at_most_wei)}, likely {amount(quote.likely_wei)}, refundable from{" "}
        {formatMoment(joinBy, now)}, or {formatMoment(joinBy + terms.train_for, now)} once training began.
      </p>
      <p className="small muted">{quote.refund_rule}</p>
      <dl className="facts">
        <div>
          <dt>{terms.slots > 1 ? `${terms.slots} workers` : "1 worker"}</dt>
          <dd>
            <Amount wei={BigInt(terms.reward) * BigInt(terms.slots)} />
          </dd>
        </div>
        <div>
          <dt>{terms.audits === 1 ? "1 audit" : `${terms.audits} audits`}</dt>
          <dd>
            <Amount wei={BigInt(terms.audit_fee) * BigInt(terms.audits)} />
          </dd>
        </div>
        <div>
          <dt>Estimated training</dt>
          <dd>{measured === null ? "measured by the check" : formatElapsed(measured)}</dd>
        </div>
        <div>
          <dt>Free workers now</dt>
          <dd>{quote.workers_free}</dd>
        </div>
        {balance !== undefined && (
          <div>
            <dt>In your wallet</dt>
            <dd className={balance < BigInt(quote.at_most_wei) ? "tone-bad" : ""}>
              <Amount wei={balance} digits={4} />
            </dd>
          </div>
        )}
      </dl>
      {problems.length > 0 ? (
        <Notice tone="bad" title="The market would refuse these terms">
          {problems[0]?.text}
        </Notice>
      ) : (
        <CheckAndPost draft={draft} quote={quote} isWorking={isWorking} check={check} />
      )}
    </>
  );
}

/** The check of a quote, as long as it is of these terms and this wallet. */
function useCheck(quote: Quote) {
  const wallet = useWallet();
  const key = JSON.stringify([quote.terms, wallet.address]);
  const check = useMutation({
    mutationKey: ["preflight"],
    mutationFn: async (wanted: string) => {
      const body = {
        terms: quote.terms,
        rehearse: true,
        ...(wallet.address ? { requester: wallet.address } : {}),
      };
      return { wanted, answer: await send<Preflight>("POST", "/preflight", body) };
    },
  });
  const { reset } = check;
  // A check is of what was asked for then; other terms need another one.
  useEffect(() => {
    if (check.data && check.data.wanted !== key) reset();
  }, [check.data, key, reset]);
  const preflight = check.data?.wanted === key ? check.data.answer : undefined;
  return { run: () => check.mutate(key), isPending: check.isPending, error: check.error, preflight };
}

interface CheckAndPostProps {
  draft: Draft;
  quote: Quote;
  isWorking: boolean;
  check: ReturnType<typeof useCheck>;
}

function CheckAndPost({ draft, quote, isWorking, check }: CheckAndPostProps) {
  const config = useConfig();
  const amount = useAmount();
  const wallet = useWallet();
  const { send: sendTransaction, isBusy, error } = useSend();
  const isPosting = useTransactions().some((one) => one.draft === draft.id && isPending(one.stage));
  const { preflight } = check;
  const isSame = preflight === undefined || isWhatWasChosen(preflight, quote, config.market);

  const post = async () => {
    if (!preflight) return;
    await sendTransaction({
      title: `Post task: ${draft.model?.name ?? "training"}`,
      kind: "post",
      data: postData(quote.terms),
      value: BigInt(preflight.value_wei),
      draft: draft.id,
    });
  };

  return (
    <div className="stack stack-m">
      {(check.isPending || preflight) && <Checks preflight={preflight} />}
      {check.error && (
        <Notice tone="bad" title="The check could not be made" urgent>
          {problemText(check.error)}
        </Notice>
      )}
      {!isSame && (
        <Notice tone="bad" title="Nothing was sent" urgent>
          The server prepared another transaction than the one you chose here. Load the page again.
        </Notice>
      )}
      {error && (
        <Notice tone={error.startsWith("You declined") ? "warn" : "bad"} title="Not posted" urgent>
          {error} Your draft is still here.
        </Notice>
      )}
      {!wallet.isConnected ? (
        <Button look="primary" size="wide" onClick={wallet.connect}>
          Connect a wallet
        </Button>
      ) : preflight?.ok && isSame ? (
        <Button
          look="primary"
          size="wide"
          busy={isBusy || isPosting}
          disabled={isWorking}
          onClick={() => void post()}
        >
          {isPosting ? "Posting …" : `Post task for ${amount(quote.at_most_wei)}`}
        </Button>
      ) : (
        <Button look="primary" size="wide" busy={check.isPending} disabled={isWorking} onClick={check.run}>
          {preflight ? "Check again" : "Check everything"}
        </Button>
      )}
      <p className="small faint">
        {preflight?.ok
          ? "Your wallet opens next. You sign one transaction to the market, which holds the money until the result was checked."
          : "Checks balance, chain, content and one batch in a sandbox. Nothing is signed yet."}
      </p>
    </div>
  );
}

/** What is signed is made here; a server that says otherwise is wrong, or worse. */
function isWhatWasChosen(preflight: Preflight, quote: Quote, market: string): boolean {
  return (
    preflight.to.toLowerCase() === market.toLowerCase() &&
    preflight.data.toLowerCase() === postData(quote.terms).toLowerCase() &&
    BigInt(preflight.value_wei) <= escrowOf(quote.terms)
  );
}

const NAMES: Record<Check["name"], string> = {
  manifest: "Manifest",
  terms: "Terms",
  content: "Content",
  balance: "Balance",
  capacity: "Capacity",
  rehearsal: "One batch",
  post: "Trial of the transaction",
  chain: "Chain",
};

const MARKS: Record<Check["status"], { icon: IconName; tone: string; word: string }> = {
  ok: { icon: "check", tone: "tone-good", word: "good" },
  warning: { icon: "alert", tone: "tone-warn", word: "warning" },
  failed: { icon: "cross", tone: "tone-bad", word: "failed" },
  skipped: { icon: "info", tone: "faint", word: "skipped" },
};

function Checks({ preflight }: { preflight: Preflight | undefined }) {
  if (!preflight) {
    return (
      <div className="row" role="status">
        <span className="spinner" aria-hidden="true" /> Running one batch in the sandbox; this takes some
        seconds …
      </div>
    );
  }
  return (
    <div role="status">
      <ul className="checks" aria-label="Checks">
        {preflight.checks.map((check) => {
          const mark = MARKS[check.status];
          return (
            <li key={check.name}>
              <span className={mark.tone}>
                <Icon name={mark.icon} />
              </span>
              <span>
                <strong>{NAMES[check.name] ?? check.name}</strong>
                <span className="visually-hidden"> ({mark.word})</span>{" "}
                <span className="muted">{check.message}</span>
                {check.fix && check.status !== "ok" && <span className="small"> {check.fix}</span>}
              </span>
            </li>
          );
        })}
      </ul>
    </div>
  );
}
