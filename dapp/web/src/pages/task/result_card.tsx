/** What came of it: metrics, the model with its CID checked in this browser, and the papers. */

import { useQuery } from "@tanstack/react-query";
import { resultQuery } from "~/api/queries";
import type { ResultView, Task } from "~/api/types";
import { Card, CopyButton, Notice, Skeleton } from "~/components/basics";
import { Amount } from "~/components/chain";
import { Trouble } from "~/components/errors";
import { formatValue } from "~/pages/task/charts";
import { NOT_DRAWN } from "~/pages/task/curves";
import { Downloads } from "~/pages/task/downloads";
import { failureText } from "~/protocol/states";
import { formatElapsed } from "~/protocol/units";

export function ResultCard({ view }: { view: Task }) {
  const { state } = view.task;
  const { data, error, refetch } = useQuery(resultQuery(view.task));
  if (error && !data) return <Trouble error={error} what="The result" retry={() => void refetch()} />;
  if (!data) {
    return (
      <Card title="Result">
        <Skeleton height="160px" />
      </Card>
    );
  }
  if (!data.available) {
    return (
      <Card title="Result">
        <p className="muted">{data.reason ?? "The result is not published yet."}</p>
      </Card>
    );
  }
  const isRefused = state === "failed" || state === "cancelled";
  return (
    <Card
      title="Result"
      action={
        state === "settled" || isRefused ? undefined : (
          <span className="small tone-warn">not settled yet</span>
        )
      }
    >
      <div className="stack stack-m">
        {isRefused && (
          <Notice tone="bad" title="This result was not accepted">
            The task has failed: {failureText(view.task.failure)}. The numbers are what the workers claimed.
          </Notice>
        )}
        <Figures result={data} />
        <Downloads view={view} result={isRefused ? { ...data, model_url: null, state_cid: null } : data} />
        {data.snippet && !isRefused && <Snippet text={data.snippet} />}
      </div>
    </Card>
  );
}

function Figures({ result }: { result: ResultView }) {
  const numbers = [
    ...Object.entries(result.tested).map(([name, value]) => ({
      name: `test ${name}`,
      value: formatValue(value),
    })),
    ...Object.entries(result.metrics)
      .filter(([name]) => !NOT_DRAWN.includes(name) && name !== "examples_per_s")
      .map(([name, value]) => ({ name, value: formatValue(value) })),
  ];
  return (
    <dl className="columns columns-s result-figures">
      {numbers.map((one) => (
        <div key={one.name}>
          <dt>{one.name}</dt>
          <dd>{one.value}</dd>
        </div>
      ))}
      {result.train_s !== null && (
        <div>
          <dt>trained for</dt>
          <dd>{formatElapsed(result.train_s)}</dd>
        </div>
      )}
      {result.energy_j ? (
        <div>
          <dt>energy, estimated</dt>
          <dd>{formatEnergy(result.energy_j)}</dd>
        </div>
      ) : null}
      <div>
        <dt>paid</dt>
        <dd>
          <Amount wei={result.paid_wei} digits={4} />
        </dd>
      </div>
      <div>
        <dt>came back</dt>
        <dd>
          <Amount wei={result.refunded_wei} digits={4} />
        </dd>
      </div>
    </dl>
  );
}

function formatEnergy(joules: number): string {
  const wattHours = joules / 3600;
  return wattHours < 1000 ? `${wattHours.toPrecision(2)} Wh` : `${(wattHours / 1000).toPrecision(3)} kWh`;
}

function Snippet({ text }: { text: string }) {
  return (
    <div className="stack stack-s">
      <div className="row row-between">
        <h3>Load it in Python</h3>
        <CopyButton text={text} label="Copy the Python snippet" />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines scroll, also by keyboard */}
      <pre className="code" tabIndex={0}>
        {text}
      </pre>
    </div>
  );
}
