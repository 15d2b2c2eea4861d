/** One worker: its record, what it earned, and its tasks. */

import { useQuery } from "@tanstack/react-query";
import { ApiError } from "~/api/client";
import { workerQuery } from "~/api/queries";
import type { WorkerView } from "~/api/types";
import { Badge, Card, Empty, SkeletonRows } from "~/components/basics";
import { AddressTag, Amount, ClassTag, useAmount } from "~/components/chain";
import { Trouble } from "~/components/errors";
import { TaskTable } from "~/components/task_table";
import { useTitle } from "~/components/title";
import { formatDuration, formatMoment, formatPercent, shortAddress } from "~/protocol/units";
import { Link } from "~/router";

export default function Worker({ address }: { address: string }) {
  useTitle(`Worker ${shortAddress(address)}`);
  const { data, error, refetch } = useQuery(workerQuery(address));
  if (error && !data) {
    if (!(error instanceof ApiError && error.isMissing))
      return <Trouble error={error} what="The worker" retry={() => void refetch()} />;
    return (
      <Card>
        <Empty level={1} icon="search" title="This address never registered as a worker">
          <p className="mono wrap-anywhere">{address}</p>
          <Link to="/workers" className="button">
            All workers
          </Link>
        </Empty>
      </Card>
    );
  }
  if (!data) return <SkeletonRows rows={4} height="96px" />;
  return <Shown view={data} />;
}

function Shown({ view }: { view: WorkerView }) {
  const { worker } = view;
  return (
    <div className="stack">
      <div className="head">
        <div className="head-text">
          <h1>
            Worker <AddressTag address={worker.address} copy />
          </h1>
          <p className="muted row">
            {worker.is_retired ? <Badge>Retired</Badge> : <Badge tone="good">Registered</Badge>}
            {worker.since && <span>since {formatMoment(worker.since)}</span>}
            {worker.env_class && (
              <span>
                · class <ClassTag envClass={worker.env_class} />
              </span>
            )}
          </p>
        </div>
      </div>
      <dl className="columns columns-s">
        <Stat title="Earned" below="beyond its own stakes">
          <Amount wei={worker.earned_wei} digits={4} />
        </Stat>
        <Stat title="Record" below={`${worker.settled} settled, ${worker.failed} failed`}>
          {worker.success_rate === null ? "new" : formatPercent(worker.success_rate)}
        </Stat>
        <Stat title="Audits" below={`${worker.audits_wrong} wrong`}>
          {worker.audits_right} right
        </Stat>
        <Stat title="Bond" below={<BondLocked wei={worker.bond_locked_wei} />}>
          <Amount wei={worker.bond_wei} digits={4} />
        </Stat>
      </dl>
      <div className="split">
        <Card flush title="Tasks">
          {view.tasks.length ? (
            <TaskTable tasks={view.tasks} />
          ) : (
            <Empty icon="play" title="No task yet">
              <p>It has registered and waits for a task that fits its policy.</p>
            </Empty>
          )}
        </Card>
        <aside className="stack">
          <Card title="Earnings by day">
            <Earnings days={view.earnings} />
          </Card>
          <Card title="Terms of its duty">
            <dl className="facts">
              <div>
                <dt>Lowest audit fee</dt>
                <dd>
                  <Amount wei={view.min_fee_wei} />
                </dd>
              </div>
              <div>
                <dt>Time to audit</dt>
                <dd>{view.min_audit_for ? `at least ${formatDuration(view.min_audit_for)}` : "any"}</dd>
              </div>
              <div>
                <dt>Time to answer</dt>
                <dd>{view.min_answer_for ? `at least ${formatDuration(view.min_answer_for)}` : "any"}</dd>
              </div>
              <div>
                <dt>Credit in the market</dt>
                <dd>
                  <Amount wei={view.credit_wei} digits={4} />
                </dd>
              </div>
              {view.unbonds_at && (
                <div>
                  <dt>Bond comes back</dt>
                  <dd>{formatMoment(view.unbonds_at)}</dd>
                </div>
              )}
            </dl>
          </Card>
        </aside>
      </div>
    </div>
  );
}

function BondLocked({ wei }: { wei: string }) {
  const amount = useAmount();
  return `${amount(wei, 4)} behind seats`;
}

function Stat({
  title,
  below,
  children,
}: {
  title: string;
  below: React.ReactNode;
  children: React.ReactNode;
}) {
  return (
    <div className="stat">
      <dt>{title}</dt>
      <dd>
        {children}
        <div className="small">{below}</div>
      </dd>
    </div>
  );
}

function Earnings({ days }: { days: [number, string][] }) {
  const amount = useAmount();
  const shown = days.slice(-14);
  const most = shown.reduce((max, [, wei]) => (BigInt(wei) > max ? BigInt(wei) : max), 1n);
  if (!shown.length) return <p className="muted">Nothing yet.</p>;
  return (
    <ul className="stack stack-s">
      {shown.toReversed().map(([day, wei]) => (
        <li key={day} className="earning small">
          <span className="faint">
            {new Date(day * 1000).toLocaleDateString("en-GB", {
              day: "numeric",
              month: "short",
              timeZone: "UTC",
            })}
          </span>
          <span className="bar" aria-hidden="true">
            <span style={{ transform: `scaleX(${Number((BigInt(wei) * 1000n) / most) / 1000})` }} />
          </span>
          <span className="number">{amount(wei, 4)}</span>
        </li>
      ))}
    </ul>
  );
}
