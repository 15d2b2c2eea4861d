/** Verification in words, the price, and the times; all with defaults that can be posted as they are. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { classesQuery, useConfig } from "~/api/queries";
import type { Quote, TermsDocument } from "~/api/types";
import { Button, Notice } from "~/components/basics";
import { useAmount } from "~/components/chain";
import { AmountField, Choices, Field, NumberField, SpanField } from "~/components/forms";
import type { Draft, Wishes } from "~/drafts/draft";
import { auditable, detection } from "~/protocol/detection";
import { POLICY_WORDS, type Policy } from "~/protocol/states";
import { problemsOf } from "~/protocol/terms";
import { formatPercent, plural } from "~/protocol/units";

interface StepProps {
  draft: Draft;
  change: (change: (draft: Draft) => Draft) => void;
  quote: Quote | undefined;
}

export function PriceStep({ draft, change, quote }: StepProps) {
  const { params, currency } = useConfig();
  const [isOpen, setOpen] = useState(false);
  if (!quote)
    return (
      <p className="muted">
        The market's price and the choice of verification follow once the training is set.
      </p>
    );
  const wish = (wishes: Wishes) =>
    change((before) => ({ ...before, wishes: { ...before.wishes, ...wishes } }));
  const { terms } = quote;
  const problems = params ? problemsOf(terms, params) : [];
  const problem = (field: keyof TermsDocument) => problems.find((one) => one.field === field)?.text;
  return (
    <div className="stack">
      <Verification draft={draft} quote={quote} wish={wish} problem={problem("audits")} />
      <div className="stack stack-s">
        <div className="fields">
          <AmountField
            label="Reward per worker"
            wei={BigInt(draft.wishes.rewardWei ?? terms.reward)}
            symbol={currency.symbol}
            error={problem("reward")}
            hint={<PriceHint quote={quote} />}
            onChange={(wei) => wish({ rewardWei: String(wei) })}
          />
          <AmountField
            label="Stake per worker"
            wei={BigInt(draft.wishes.stakeWei ?? terms.stake)}
            symbol={currency.symbol}
            error={problem("stake")}
            hint={<StakeHint quote={quote} />}
            onChange={(wei) => wish({ stakeWei: String(wei) })}
          />
          {terms.policy !== "replicate" && (
            <AmountField
              label="Fee per audit"
              wei={BigInt(draft.wishes.auditFeeWei ?? terms.audit_fee)}
              symbol={currency.symbol}
              error={problem("audit_fee")}
              hint="Paid only for audits that were made."
              onChange={(wei) => wish({ auditFeeWei: String(wei) })}
            />
          )}
        </div>
      </div>
      <div className="stack stack-s">
        <div>
          <Button look="quiet" size="small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? "Hide deadlines" : "Deadlines and class of machine"}
          </Button>
        </div>
        {isOpen && <Deadlines draft={draft} terms={terms} wish={wish} problem={problem} />}
      </div>
      {quote.warnings.map((warning) => (
        <Notice key={warning} tone="warn" title={warning} />
      ))}
      {Object.keys(draft.wishes).length > 0 && (
        <div>
          <Button size="small" onClick={() => change((before) => ({ ...before, wishes: {} }))}>
            Back to the market's defaults
          </Button>
        </div>
      )}
    </div>
  );
}

function PriceHint({ quote }: { quote: Quote }) {
  const amount = useAmount();
  if (quote.market_median_wei === null) return "No task of this class to compare with yet.";
  return `Here ${amount(quote.market_low_wei ?? "0", 4)} to ${amount(quote.market_high_wei ?? "0", 4)}, usually ${amount(quote.market_median_wei, 4)}.`;
}

function StakeHint({ quote }: { quote: Quote }) {
  const amount = useAmount();
  const isEnough = BigInt(quote.terms.stake) >= BigInt(quote.honest_stake_wei);
  return isEnough
    ? "Lost by who cheats; high enough that cheating does not pay."
    : `Below ${amount(quote.honest_stake_wei, 4)} cheating could pay.`;
}

interface PartProps {
  draft: Draft;
  quote: Quote;
  wish: (wishes: Wishes) => void;
  problem: string | undefined;
}

function Verification({ draft, quote, wish, problem }: PartProps) {
  const amount = useAmount();
  const { terms } = quote;
  const training = draft.training ?? {};
  const isAlone = training.mode === "single";
  const isAsync = training.mode === "async";
  const allowed: Policy[] = isAsync ? ["score"] : isAlone ? ["audit", "replicate"] : ["audit"];
  const fees = BigInt(terms.audit_fee) * BigInt(terms.audits);
  return (
    <div className="stack stack-m">
      {allowed.length > 1 && (
        <Choices
          legend="How the result is checked"
          value={terms.policy}
          choices={allowed.map((policy) => ({
            value: policy,
            title: POLICY_WORDS[policy].name,
            text: POLICY_WORDS[policy].short,
          }))}
          onChange={(policy) => wish({ policy, ...(policy === "replicate" ? { slots: 3 } : { slots: 1 }) })}
        />
      )}
      <div className="fields">
        {terms.policy === "replicate" ? (
          <NumberField
            label="Workers that train it alone"
            value={draft.wishes.slots ?? terms.slots}
            min={1}
            max={32}
            hint={`${terms.quorum} must find the same.`}
            onChange={(slots) => wish({ slots })}
          />
        ) : (
          <NumberField
            label={terms.policy === "audit" ? "Audits" : "Evaluators"}
            value={draft.wishes.audits ?? terms.audits}
            min={0}
            max={15}
            error={problem}
            hint={`${plural(quote.auditors_free, "auditor")} of this class free now.`}
            onChange={(audits) => wish({ audits })}
          />
        )}
        {terms.policy === "score" && (
          <NumberField
            label="Target score"
            unit="%"
            value={(draft.wishes.target ?? terms.target) / 10_000}
            min={0}
            max={100}
            step="any"
            hint="Lowest median that is paid for."
            onChange={(percent) => wish({ target: Math.round(percent * 10_000) })}
          />
        )}
      </div>
      <div className="stack stack-s" role="status">
        <p>{words(quote)}</p>
        {terms.policy === "audit" && (
          <p className="small muted">
            This costs {amount(fees)} in fees. Auditors answer before they see what the workers claim, so they
            cannot just agree.
          </p>
        )}
      </div>
    </div>
  );
}

/** Detection in words: what is found for sure, and how likely the rest is. */
function words(quote: Quote): string {
  const { terms } = quote;
  if (terms.policy === "replicate") {
    return terms.slots < 2
      ? "One worker's word is taken as it is: nobody checks it."
      : `${terms.slots} workers train it apart from each other; ${terms.quorum} equal results win. A cheat would have to be the majority.`;
  }
  if (terms.policy !== "audit")
    return `${plural(terms.audits, "evaluator")} measure the result; their median counts.`;
  if (terms.audits === 0)
    return "Nobody checks the work unless somebody challenges it. Take at least one audit.";
  const seats = auditable(terms.segments, terms.audits);
  const chance = (part: number) =>
    formatPercent(detection(terms.segments, Math.max(1, Math.round(terms.segments * part)), terms.audits));
  return (
    `${plural(seats, "auditor")} recompute ${plural(seats, "segment")} of ${terms.segments}, drawn by the chain. ` +
    `Work that is all made up is always found; half of it with a chance of ${chance(0.5)}, a tenth with ${chance(0.1)}. ` +
    "Who is caught loses its whole stake."
  );
}

interface DeadlineProps {
  draft: Draft;
  terms: TermsDocument;
  wish: (wishes: Wishes) => void;
  problem: (field: keyof TermsDocument) => string | undefined;
}

function Deadlines({ draft, terms, wish, problem }: DeadlineProps) {
  const classes = useQuery(classesQuery);
  const { wishes } = draft;
  return (
    <div className="fields">
      <SpanField
        label="To join"
        seconds={wishes.joinFor ?? terms.join_for}
        error={problem("join_for")}
        hint="Then everything comes back."
        onChange={(joinFor) => wish({ joinFor })}
      />
      <SpanField
        label="To train"
        seconds={wishes.trainFor ?? terms.train_for}
        error={problem("train_for")}
        hint="From the last join on."
        onChange={(trainFor) => wish({ trainFor })}
      />
      <SpanField
        label="To audit"
        seconds={wishes.auditFor ?? terms.audit_for}
        error={problem("audit_for")}
        hint="For one segment."
        onChange={(auditFor) => wish({ auditFor })}
      />
      <SpanField
        label="To answer"
        seconds={wishes.answerFor ?? terms.answer_for}
        error={problem("answer_for")}
        hint="To open and reveal."
        onChange={(answerFor) => wish({ answerFor })}
      />
      <SpanField
        label="To challenge"
        seconds={wishes.challengeFor ?? terms.challenge_for}
        error={problem("challenge_for")}
        hint="Before it is settled."
        onChange={(challengeFor) => wish({ challengeFor })}
      />
      <Field label="Class of machine" hint="Machines whose results have the same bits.">
        {({ id }) => (
          <select
            id={id}
            className="select"
            value={wishes.envClass ?? terms.env_class}
            onChange={(event) => wish({ envClass: event.target.value as `0x${string}` })}
          >
            {!classes.data?.some((one) => one.env_class === terms.env_class) && (
              <option value={terms.env_class}>{terms.env_class.slice(2, 10)}</option>
            )}
            {classes.data?.map((one) => (
              <option key={one.env_class} value={one.env_class}>
                {one.title ?? one.env_class.slice(2, 10)} ({one.free} free)
              </option>
            ))}
          </select>
        )}
      </Field>
    </div>
  );
}
