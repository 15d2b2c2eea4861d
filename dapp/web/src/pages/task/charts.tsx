/** Live charts of the run, one for each metric, one line for each worker. */

import { lazy, Suspense } from "react";
import type { Task } from "~/api/types";
import { Bar, Card, Empty, Skeleton, SkeletonRows } from "~/components/basics";
import { Trouble } from "~/components/errors";
import { type Curve, columnsOf, lastStep, lastValue, MOST_CHARTS, orderedNames } from "~/pages/task/curves";
import type { Run } from "~/pages/task/use_run";
import { isOver } from "~/protocol/states";
import { formatCount, plural } from "~/protocol/units";

const Plot = lazy(() => import("~/pages/task/plot"));

const TITLES: Record<string, string> = {
  loss: "Loss",
  accuracy: "Accuracy",
  val_loss: "Validation loss",
  val_accuracy: "Validation accuracy",
  examples_per_s: "Examples per second",
};

export function Charts({ view, run }: { view: Task; run: Run }) {
  const { task } = view;
  const all = orderedNames(run.curves);
  const names = all.slice(0, MOST_CHARTS);
  return (
    <Card title="Run" action={<Progress view={view} run={run} />}>
      {run.error && !run.isLoaded ? (
        <Trouble error={run.error} what="The run" retry={run.reload} />
      ) : !run.isLoaded ? (
        <div className="charts">
          <Skeleton height="262px" />
          <Skeleton height="262px" />
        </div>
      ) : names.length === 0 ? (
        <NothingYet state={task.state} />
      ) : (
        <div className="stack">
          <Suspense fallback={<SkeletonRows rows={1} height="262px" />}>
            <div className="charts">
              {names.map((name) => (
                <Chart key={name} name={name} bySlot={run.curves.get(name) ?? new Map()} />
              ))}
            </div>
          </Suspense>
          {all.length > names.length && (
            <p className="small muted">
              {plural(all.length - names.length, "more number")} of this run are in the file for TensorBoard.
            </p>
          )}
          <Legend
            slots={[...new Set(names.flatMap((name) => [...(run.curves.get(name)?.keys() ?? [])]))].sort()}
          />
        </div>
      )}
    </Card>
  );
}

function Progress({ view, run }: { view: Task; run: Run }) {
  const steps = view.task.summary.steps ?? 0;
  const last = lastStep(run.curves);
  if (!steps || !last) return null;
  return (
    <div className="row small muted">
      <span className="number">
        step {formatCount(last)} of {formatCount(steps)}
      </span>
      <div className="progress-cell">
        <Bar part={last / steps} label="Training" />
      </div>
    </div>
  );
}

function NothingYet({ state }: { state: string }) {
  if (state === "open") {
    return (
      <Empty icon="play" title="Training has not begun">
        <p>
          It begins by itself when all slots are taken. The loss appears here within two seconds of a step,
          and accuracy and other metrics with each segment.
        </p>
      </Empty>
    );
  }
  return (
    <Empty
      icon="inbox"
      title={isOver(state) ? "No worker published its metrics here" : "Waiting for the first numbers"}
    >
      <p>
        {isOver(state)
          ? "Workers tell of a run only if their agent was set to. The result and the trace do not depend on it."
          : "The workers prepare the data and build the model; the first step usually comes within a minute."}
      </p>
    </Empty>
  );
}

function Chart({ name, bySlot }: { name: string; bySlot: ReadonlyMap<number, Curve> }) {
  const value = lastValue(bySlot);
  const { slots, data } = columnsOf(bySlot);
  const title = TITLES[name] ?? name;
  return (
    <figure className="chart">
      <figcaption className="chart-head">
        <h3>{title}</h3>
        <span className="number bold">{value === null ? "" : formatValue(value)}</span>
      </figcaption>
      <Plot title={title} slots={slots} data={data} />
    </figure>
  );
}

export function formatValue(value: number): string {
  const size = Math.abs(value);
  if (size >= 1000) return formatCount(Math.round(value));
  if (size >= 100) return value.toFixed(1);
  if (size !== 0 && size < 0.0001) return value.toExponential(2);
  return value.toFixed(4);
}

function Legend({ slots }: { slots: number[] }) {
  return (
    <div className="legend">
      {slots.map((slot) => (
        <span key={slot}>
          <i className={`swatch line-${(slot % 6) + 1}`} aria-hidden="true" /> worker {slot}
        </span>
      ))}
    </div>
  );
}
