/** A task: where it stands, who moves next, what the run looks like, and what came of it. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { ApiError } from "~/api/client";
import { type Line, type LiveEvent, useLive } from "~/api/live";
import { forgetTask, taskKeys, taskQuery, timelineQuery } from "~/api/queries";
import type { Task, Timeline, TimelineEvent } from "~/api/types";
import { Badge, Card, Empty, SkeletonRows, StateBadge, TabPanel, Tabs } from "~/components/basics";
import { AddressTag, ClassTag, useAmount } from "~/components/chain";
import { Trouble } from "~/components/errors";
import { sizeText, taskTitle } from "~/components/task_table";
import { useTitle } from "~/components/title";
import { Charts } from "~/pages/task/charts";
import { ClockCard } from "~/pages/task/clock_card";
import { EventsCard } from "~/pages/task/events_card";
import { LogCard } from "~/pages/task/log_card";
import { MoneyCard } from "~/pages/task/money_card";
import { MovesCard } from "~/pages/task/moves_card";
import { ResultCard } from "~/pages/task/result_card";
import { Stages } from "~/pages/task/stages";
import { TraceCard } from "~/pages/task/trace_card";
import { useRun } from "~/pages/task/use_run";
import { WorkersCard } from "~/pages/task/workers_card";
import { failureText, isOver, POLICY_WORDS } from "~/protocol/states";
import { formatAgo, formatDuration, formatPercent, plural } from "~/protocol/units";
import { Link, useSearch } from "~/router";
import { useTransactions } from "~/transactions/tracking";

const TABS = [
  { id: "run", label: "Run" },
  { id: "logs", label: "Log" },
  { id: "trace", label: "Trace" },
  { id: "history", label: "History" },
  { id: "terms", label: "Terms" },
];

const WAITS = 40;
const REFRESH_MS = 8_000;

function isMissing(error: unknown): boolean {
  return error instanceof ApiError && error.isMissing;
}

export default function TaskPage({ id }: { id: number }) {
  const client = useQueryClient();
  const isOurs = useTransactions().some((one) => one.task === id);
  // What was posted here a moment ago is on the chain; the server sees it with its next look.
  const patience = {
    retry: (count: number, error: Error) => (isMissing(error) ? isOurs && count < WAITS : count < 3),
    retryDelay: 700,
  };
  const view = useQuery({
    ...taskQuery(id),
    ...patience,
    // A deadline that passes is no event: what may be done then is asked for.
    refetchInterval: ({ state: { data, error } }) =>
      data && !error && isOver(data.task.state) ? false : REFRESH_MS,
  });
  // Both at once: stages that come after the rest push it down.
  const timeline = useQuery({ ...timelineQuery(id), ...patience });
  useTitle(view.data ? `Task ${id}: ${taskTitle(view.data.task)}` : `Task ${id}`);
  const run = useRun(id);
  const take = (event: LiveEvent) => {
    switch (event.name) {
      case "metrics":
        return run.takeMetrics(event.data);
      case "logs":
        return run.takeLines(event.data.lines);
      case "timeline":
      case "task":
      case "undone":
      case "manifest":
        return void client.invalidateQueries({ queryKey: taskKeys(id).all });
      case "reset":
        forgetTask(client, id);
        return run.reload();
      default:
        return;
    }
  };
  const line = useLive([`task:${id}`], take);
  // A reorg may take back what was shown already.
  if (isMissing(view.error)) return <NoTask id={id} isGone={view.data !== undefined} />;
  if (view.error && !view.data) {
    return <Trouble error={view.error} what={`Task ${id}`} retry={() => void view.refetch()} />;
  }
  if (!view.data || timeline.isPending) return <Loading />;
  return <Shown view={view.data} timeline={timeline.data} run={run} line={line} />;
}

function NoTask({ id, isGone }: { id: number; isGone: boolean }) {
  return (
    <Card>
      <Empty
        level={1}
        icon="search"
        title={isGone ? `Task ${id} is not on the chain any more` : `There is no task ${id} yet`}
      >
        <p>
          {isGone
            ? "The chain took back the block that it was posted in, or the server reads the chain anew. It comes back if its transaction gets into another block, maybe under another number; this page looks again by itself."
            : "If it was posted a moment ago, the server has not seen its block yet: this page looks again by itself."}
        </p>
        <Link to="/" className="button">
          To the market
        </Link>
      </Empty>
    </Card>
  );
}

function Loading() {
  return (
    <div className="stack">
      <SkeletonRows rows={1} height="64px" />
      <SkeletonRows rows={1} height="140px" />
      <div className="split">
        <SkeletonRows rows={2} height="300px" />
        <SkeletonRows rows={3} height="180px" />
      </div>
    </div>
  );
}

interface ShownProps {
  view: Task;
  timeline: Timeline | undefined;
  run: ReturnType<typeof useRun>;
  line: Line;
}

function Shown({ view, timeline, run, line }: ShownProps) {
  const [search, change] = useSearch();
  const tab = TABS.some((one) => one.id === search.get("tab")) ? (search.get("tab") ?? "run") : "run";
  const { task } = view;
  // What comes while somebody watches must not push away what they look at: then it is below.
  const [isAbove] = useState(isOver(task.state));
  const result = (task.state === "settled" || view.has_result) && <ResultCard view={view} />;
  return (
    <div className="stack">
      <Header view={view} line={line} />
      <Card>
        <Stages stages={timeline?.stages} />
      </Card>
      <ClockCard view={view} />
      <div className="split">
        <div className="stack">
          {isAbove && result}
          <div>
            <Tabs
              label="Parts of the task"
              tabs={TABS}
              current={tab}
              onChange={(next) => change({ tab: next === "run" ? null : next })}
            />
          </div>
          <TabPanel id={tab}>{panelOf(tab, view, run, timeline?.events)}</TabPanel>
          {!isAbove && result}
        </div>
        <aside className="stack">
          <MovesCard view={view} />
          <MoneyCard view={view} />
          <WorkersCard view={view} run={run} />
        </aside>
      </div>
    </div>
  );
}

function panelOf(
  tab: string,
  view: Task,
  run: ReturnType<typeof useRun>,
  events: TimelineEvent[] | undefined,
): ReactNode {
  switch (tab) {
    case "logs":
      return <LogCard view={view} run={run} />;
    case "trace":
      return <TraceCard view={view} />;
    case "history":
      return <EventsCard events={events} />;
    case "terms":
      return <TermsCard view={view} />;
    default:
      return <Charts view={view} run={run} />;
  }
}

function Header({ view, line }: { view: Task; line: Line }) {
  const { task } = view;
  return (
    <div className="head">
      <div className="head-text">
        <div className="row">
          <StateBadge state={task.state} />
          {!isOver(task.state) && (
            <Badge tone={line === "open" ? "good" : "neutral"} live={line === "open"}>
              {line === "open" ? "Live" : line === "broken" ? "Reconnecting" : "Connecting"}
            </Badge>
          )}
          {task.is_listed && <Badge>Invited workers only</Badge>}
        </div>
        <h1>
          <span className="faint">Task {task.id}</span> {taskTitle(task)}
        </h1>
        <p className="muted">
          {sizeText(task)}
          {task.state === "failed" && ` · Failed: ${failureText(task.failure)}.`}
        </p>
        <p className="small muted row row-wide">
          <span>
            Posted {formatAgo(task.posted_at)} by <AddressTag address={task.requester} copy />
          </span>
          <span>
            Class <ClassTag envClass={task.env_class} />
          </span>
        </p>
      </div>
      <div className="row">
        <Link to={`/new?from=${task.id}`} className="button">
          Run again
        </Link>
      </div>
    </div>
  );
}

function TermsCard({ view }: { view: Task }) {
  const amount = useAmount();
  const { task } = view;
  const facts: [string, ReactNode][] = [
    ["Verification", `${POLICY_WORDS[task.policy].name}: ${POLICY_WORDS[task.policy].short}`],
    ["Workers", `${task.slots}, of which ${view.quorum} must agree`],
    ["Reward per worker", amount(task.reward_wei)],
    ["Stake per worker", amount(task.stake_wei)],
    ["Audits", `${task.audits}, at least ${view.min_audits}, ${amount(view.audit_fee_wei)} each`],
    ["Segments", task.segments || "–"],
    ...(task.policy === "score" || task.policy === "contest"
      ? ([["Target", formatPercent(view.target / 1_000_000)]] as [string, ReactNode][])
      : []),
    ["Record demanded", view.min_settled ? plural(view.min_settled, "settled task") : "none"],
    ["Time to join", formatDuration(view.join_for)],
    ["Time to train", formatDuration(view.train_for)],
    ["Time to audit", formatDuration(view.audit_for)],
    ["Time to answer", formatDuration(view.answer_for)],
    ["Challenge window", formatDuration(view.challenge_for)],
    ["Mode", task.summary.mode ?? "–"],
    ["Batch", task.summary.batch ?? "–"],
    ["Steps", task.summary.steps ?? "–"],
    ["Class", <code key="class">{task.env_class}</code>],
    ["Manifest", <code key="manifest">{task.manifest}</code>],
  ];
  return (
    <Card title="Terms">
      <dl className="facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}
