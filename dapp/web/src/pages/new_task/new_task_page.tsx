/** A new task: model, data, training, verification and price, and a check of all of it before the wallet opens. */

import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useState } from "react";
import { ApiError, problemText } from "~/api/client";
import { manifestQuery } from "~/api/queries";
import { Button, Card, Notice } from "~/components/basics";
import { Icon } from "~/components/icons";
import { useTitle } from "~/components/title";
import { draftFromManifest, isEmpty, lacksTarget, manifestOf } from "~/drafts/draft";
import { ReplaceDialog } from "~/drafts/replace_dialog";
import { useDraft } from "~/drafts/use_draft";
import { DataStep } from "~/pages/new_task/data_step";
import { ModelStep } from "~/pages/new_task/model_step";
import { Posting } from "~/pages/new_task/posting";
import { PriceStep } from "~/pages/new_task/price_step";
import { SaveDraft } from "~/pages/new_task/save_draft";
import { Summary } from "~/pages/new_task/summary";
import { TrainingStep } from "~/pages/new_task/training_step";
import { useQuote } from "~/pages/new_task/use_quote";
import { navigate, useSearch } from "~/router";
import { isPending } from "~/transactions/store";
import { useTransactions } from "~/transactions/tracking";

export default function NewTaskPage() {
  useTitle("New task");
  const [draft, store] = useDraft();
  const { change, reset, leave } = store;
  const [search, setSearch] = useSearch();
  const from = Number(search.get("from")) || null;
  const again = useQuery({ ...manifestQuery(from ?? 0), enabled: from !== null });
  const [note, setNote] = useState<string | null>(null);
  const quote = useQuote(draft);
  const mine = useTransactions().find((one) => one.draft === draft.id);
  const postedTask = mine && (mine.stage === "mined" || mine.stage === "final") ? mine.task : null;

  const leaveQuery = useCallback(() => setSearch({ from: null }), [setSearch]);
  const takeOver = useCallback(() => {
    if (from === null || !again.data) return;
    const { manifest, summary } = again.data;
    leaveQuery();
    if (manifest) change(() => draftFromManifest(manifest, `task ${from}`, summary.title ?? `task ${from}`));
    setNote(
      manifest
        ? null
        : `The manifest of task ${from} cannot be read: ${summary.error ?? "nobody serves it"}.`,
    );
  }, [from, again.data, change, leaveQuery]);

  const isAsked = from !== null && Boolean(again.data?.manifest) && !isEmpty(draft);
  useEffect(() => {
    if (!isAsked) takeOver();
  }, [isAsked, takeOver]);

  useEffect(() => {
    if (!postedTask) return;
    leave();
    navigate(`/tasks/${postedTask}`, { replace: true });
  }, [postedTask, leave]);

  return (
    <div className="stack">
      <div className="head">
        <div className="head-text">
          <h1>New task</h1>
          <p className="muted">
            {draft.origin ? `Begun from ${draft.origin}. ` : ""}What you fill in stays in this browser until
            the task is posted.
          </p>
        </div>
        <div className="row">
          <SaveDraft draft={draft} change={change} />
          {!isEmpty(draft) && (
            <Button look="quiet" onClick={reset}>
              Start over
            </Button>
          )}
        </div>
      </div>
      {isAsked && <ReplaceDialog draft={draft} onReplace={takeOver} onKeep={leaveQuery} />}
      {mine && isPending(mine.stage) && <Posting item={mine} />}
      {note && (
        <Notice tone="bad" title="Not taken over">
          {note}
        </Notice>
      )}
      {again.error && from !== null && (
        <Notice tone="bad" title={`Task ${from} could not be taken over`}>
          {problemText(again.error)}
        </Notice>
      )}
      <div className="split">
        <div className="stack">
          <Step number={1} title="Model" isDone={draft.model !== null}>
            <ModelStep draft={draft} change={change} layers={quote.manifest?.layers} />
          </Step>
          <Step number={2} title="Data" isDone={draft.data !== null && !lacksTarget(draft.data)}>
            <DataStep draft={draft} change={change} />
          </Step>
          <Step number={3} title="Training" isDone={Boolean(quote.manifest)}>
            <TrainingStep
              draft={draft}
              change={change}
              manifest={quote.manifest}
              error={fieldError(quote.manifestError)}
            />
          </Step>
          <Step number={4} title="Verification and price" isDone={Boolean(quote.quote)}>
            <PriceStep draft={draft} change={change} quote={quote.quote} />
          </Step>
        </div>
        <aside className="stack sticky" aria-label="What it costs">
          <Summary draft={draft} state={quote} hasManifest={manifestOf(draft) !== null} />
        </aside>
      </div>
    </div>
  );
}

function fieldError(error: unknown): { field: string | null; text: string } | null {
  if (!error) return null;
  return {
    field: error instanceof ApiError ? error.problem.field : null,
    text: problemText(error),
  };
}

function Step({
  number,
  title,
  isDone,
  children,
}: {
  number: number;
  title: string;
  isDone: boolean;
  children: React.ReactNode;
}) {
  return (
    <Card
      className={isDone ? "step-done" : ""}
      title={
        <>
          <span className="step-number">{isDone ? <Icon name="check" size={14} /> : number}</span>
          {title}
          {isDone && <span className="visually-hidden">, done</span>}
        </>
      }
    >
      {children}
    </Card>
  );
}
