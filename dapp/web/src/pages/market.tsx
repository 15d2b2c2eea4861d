/** The market: what is offered, what was done, and what it takes. Filters stay in the address bar. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLive } from "~/api/live";
import { classesQuery, statsQuery, tasksQuery } from "~/api/queries";
import type { MarketStats } from "~/api/types";
import { Card, Empty, Skeleton, SkeletonRows } from "~/components/basics";
import { ClassTag, useAmount } from "~/components/chain";
import { useRested } from "~/components/debounce";
import { Trouble } from "~/components/errors";
import { TaskTable } from "~/components/task_table";
import { useTitle } from "~/components/title";
import { POLICY_WORDS, type Policy } from "~/protocol/states";
import { formatDuration, formatPercent, plural } from "~/protocol/units";
import { Link, useSearch } from "~/router";

const SHOW = [
  { id: "", label: "All", query: {} },
  { id: "open", label: "Open", query: { state: ["open"] } },
  { id: "active", label: "In work", query: { active: true } },
  { id: "settled", label: "Settled", query: { state: ["settled"] } },
  { id: "failed", label: "Failed", query: { state: ["failed", "cancelled"] } },
];

const SORTS = {
  newest: "Newest first",
  oldest: "Oldest first",
  "-reward": "Highest reward",
  reward: "Lowest reward",
  deadline: "Next deadline",
  updated: "Last changed",
};

export function Market() {
  useTitle("");
  const client = useQueryClient();
  useLive(["market"], (event) => {
    if (event.name !== "head") void client.invalidateQueries({ queryKey: ["market"] });
  });
  return (
    <div className="stack">
      <div className="head">
        <div className="head-text">
          <h1>Market</h1>
          <p className="muted">Training that is paid for once strangers have recomputed parts of it.</p>
        </div>
        <Link to="/new" className="button button-primary">
          New task
        </Link>
      </div>
      <Figures />
      <Tasks />
      <Classes />
    </div>
  );
}

function Figures() {
  const { data, error, refetch } = useQuery(statsQuery);
  if (error && !data)
    return <Trouble error={error} what="The market's figures" retry={() => void refetch()} />;
  return (
    <dl className="columns columns-s">
      {FIGURES.map(({ title, value, below }) => (
        <Figure key={title} title={title} stats={data} value={value} below={below} />
      ))}
    </dl>
  );
}

interface FigureProps {
  title: string;
  value: (stats: MarketStats, amount: (wei: string) => string) => string;
  below: (stats: MarketStats, amount: (wei: string) => string) => string;
}

const FIGURES: FigureProps[] = [
  {
    title: "Tasks",
    value: (s) => String(s.tasks),
    below: (s) => `${plural(s.open_slots, "free slot")} now`,
  },
  {
    title: "Success",
    value: (s) => (s.success_rate === null ? "–" : formatPercent(s.success_rate)),
    below: (s) => `${s.settled} settled, ${s.failed} failed`,
  },
  {
    title: "Workers ready",
    value: (s) => String(s.workers_ready),
    below: (s) => `of ${s.workers} registered`,
  },
  {
    title: "Usual reward",
    value: (s, amount) => (s.median_reward_wei === null ? "–" : amount(s.median_reward_wei)),
    below: () => "per worker, median",
  },
  {
    title: "Paid out",
    value: (s, amount) => amount(s.paid_wei),
    below: (s, amount) => `${amount(s.held_wei)} held by tasks`,
  },
  {
    title: "Post to settled",
    value: (s) => (s.median_settle_s === null ? "–" : formatDuration(s.median_settle_s)),
    below: (s) => `${plural(s.disputes, "dispute")}, ${s.disputes_upheld} upheld`,
  },
];

function Figure({ title, stats, value, below }: FigureProps & { stats: MarketStats | undefined }) {
  const amount = useAmount();
  const short = (wei: string) => amount(wei, 3);
  return (
    <div className="stat">
      <dt>{title}</dt>
      <dd>
        {stats ? value(stats, short) : <Skeleton width="60%" />}
        <div className="small">{stats ? below(stats, short) : ""}</div>
      </dd>
    </div>
  );
}

function Tasks() {
  const [search, change] = useSearch();
  const [text, setText] = useState(search.get("q") ?? "");
  const rested = useRested(text);
  const show = SHOW.find((one) => one.id === (search.get("show") ?? "")) ?? SHOW[0];
  const policy = search.get("policy") ?? "";
  const sort = search.get("sort") ?? "newest";
  const cursors = search.getAll("page");
  const filters = {
    ...show?.query,
    policy,
    env_class: search.get("class"),
    search: rested.trim(),
    sort,
    limit: 20,
    cursor: cursors.at(-1),
  };
  const { data, error, refetch, isPlaceholderData } = useQuery(tasksQuery(filters));
  const isFiltered = Boolean(rested || policy || search.get("show") || search.get("class"));
  return (
    <Card
      flush
      title="Tasks"
      action={
        <fieldset className="chips">
          <legend className="visually-hidden">Which tasks</legend>
          {SHOW.map((one) => (
            <button
              key={one.id}
              type="button"
              className="chip"
              aria-pressed={one.id === show?.id}
              onClick={() => change({ show: one.id, page: null })}
            >
              {one.label}
            </button>
          ))}
        </fieldset>
      }
    >
      <div className="card-body filters">
        <label className="field">
          <span className="visually-hidden">Search tasks</span>
          <input
            className="input"
            type="search"
            placeholder="Number, title, address or digest"
            value={text}
            onChange={(event) => {
              setText(event.target.value);
              change({ q: event.target.value, page: null });
            }}
          />
        </label>
        <label className="field">
          <span className="visually-hidden">Verification</span>
          <select
            className="select"
            value={policy}
            onChange={(event) => change({ policy: event.target.value, page: null })}
          >
            <option value="">Any verification</option>
            {(Object.keys(POLICY_WORDS) as Policy[]).map((one) => (
              <option key={one} value={one}>
                {POLICY_WORDS[one].name}
              </option>
            ))}
          </select>
        </label>
        <label className="field">
          <span className="visually-hidden">Order</span>
          <select
            className="select"
            value={sort}
            onChange={(event) =>
              change({ sort: event.target.value === "newest" ? null : event.target.value, page: null })
            }
          >
            {Object.entries(SORTS).map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        </label>
      </div>
      {error && !data && (
        <div className="card-body">
          <Trouble error={error} what="The tasks" retry={() => void refetch()} />
        </div>
      )}
      {!data && !error && (
        <div className="card-body">
          <SkeletonRows rows={5} height="52px" />
        </div>
      )}
      {data && data.items.length > 0 && (
        <div aria-busy={isPlaceholderData}>
          <TaskTable tasks={data.items} />
          <nav className="card-body row row-between" aria-label="Pages of tasks">
            <span className="small muted">{plural(data.total, "task")}</span>
            <span className="row">
              <button
                type="button"
                className="button button-small"
                disabled={cursors.length === 0}
                onClick={() => change({ page: cursors.slice(0, -1) })}
              >
                Back
              </button>
              <button
                type="button"
                className="button button-small"
                disabled={!data.next}
                onClick={() => change({ page: [...cursors, data.next ?? ""] })}
              >
                More
              </button>
            </span>
          </nav>
        </div>
      )}
      {data && data.items.length === 0 && (
        <Empty
          icon={isFiltered ? "search" : "play"}
          title={isFiltered ? "No task fits these filters" : "Nobody has posted a task yet"}
        >
          <p>
            {isFiltered
              ? "Take a filter away, or search for something shorter."
              : "Post the first one: an example with its data is a click away."}
          </p>
          {isFiltered ? (
            <button
              type="button"
              className="button"
              onClick={() => {
                setText("");
                change({ q: null, show: null, policy: null, class: null, page: null });
              }}
            >
              Clear filters
            </button>
          ) : (
            <Link to="/new" className="button">
              New task
            </Link>
          )}
        </Empty>
      )}
    </Card>
  );
}

function Classes() {
  const { data, error, refetch } = useQuery(classesQuery);
  const amount = useAmount();
  if (error && !data)
    return <Trouble error={error} what="The classes of machines" retry={() => void refetch()} />;
  return (
    <Card flush title="Free capacity by class">
      {!data && (
        <div className="card-body">
          <SkeletonRows rows={2} height="44px" />
        </div>
      )}
      {data?.length === 0 && (
        <Empty icon="chip" title="No worker has registered yet">
          <p>
            A class is a kind of machine whose results have the same bits.{" "}
            <Link to="/workers">Become a worker</Link> to bring the first one.
          </p>
        </Empty>
      )}
      {data && data.length > 0 && (
        <div className="table-wrap">
          <table className="table table-cards">
            <thead>
              <tr>
                <th scope="col">Class</th>
                <th scope="col" className="right">
                  Free workers
                </th>
                <th scope="col" className="right">
                  Auditors
                </th>
                <th scope="col" className="right">
                  In work
                </th>
                <th scope="col" className="right">
                  Success
                </th>
                <th scope="col" className="right">
                  Reward per worker
                </th>
              </tr>
            </thead>
            <tbody>
              {data.map((one) => (
                <tr key={one.env_class}>
                  <td className="card-title">
                    <ClassTag envClass={one.env_class} title={one.title} />
                  </td>
                  <td data-label="Free workers" className="right">
                    {one.free} of {one.workers}
                  </td>
                  <td data-label="Auditors" className="right">
                    {one.auditors}
                  </td>
                  <td data-label="In work" className="right">
                    {one.running_tasks}
                  </td>
                  <td data-label="Success" className="right">
                    {one.success_rate === null ? "–" : formatPercent(one.success_rate)}
                  </td>
                  <td data-label="Reward" className="right number">
                    {one.median_reward_wei === null ? "–" : amount(one.median_reward_wei, 4)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  );
}
