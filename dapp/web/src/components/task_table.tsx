/** Tasks as rows, and on a phone as cards. */

import type { TaskSummary } from "~/api/types";
import { Bar, StateBadge } from "~/components/basics";
import { AddressTag, useAmount } from "~/components/chain";
import { useNow } from "~/components/clock";
import { failureText, isOver, POLICY_WORDS } from "~/protocol/states";
import { formatAgo, formatCount, formatDuration, plural } from "~/protocol/units";
import { Link } from "~/router";

interface TableProps {
  tasks: TaskSummary[];
  /** Of one requester, who needs not be told on each row. */
  isOfOne?: boolean;
}

export function TaskTable({ tasks, isOfOne = false }: TableProps) {
  const now = useNow(5_000);
  const amount = useAmount();
  return (
    <div className="table-wrap">
      <table className="table table-link table-cards">
        <thead>
          <tr>
            <th scope="col">Task</th>
            <th scope="col">State</th>
            <th scope="col">Workers</th>
            <th scope="col">Verification</th>
            <th scope="col" className="right">
              Reward
            </th>
            {!isOfOne && <th scope="col">Requester</th>}
            <th scope="col" className="right">
              Time
            </th>
          </tr>
        </thead>
        <tbody>
          {tasks.map((task) => (
            <tr key={task.id}>
              <td className="card-title">
                <span className="title-cell">
                  <Link to={`/tasks/${task.id}`} className="row-link">
                    {task.id} · {taskTitle(task)}
                  </Link>
                  <span className="small faint">{sizeText(task)}</span>
                </span>
              </td>
              <td data-label="State">
                <span className="progress-cell">
                  <StateBadge state={task.state} />
                  {task.state === "running" && (
                    <Bar part={task.progress ?? 0} label={`Training of task ${task.id}`} />
                  )}
                  {task.state === "failed" && (
                    <span className="visually-hidden">{failureText(task.failure)}</span>
                  )}
                </span>
              </td>
              <td data-label="Workers" className="number">
                {task.slots_joined} of {task.slots}
              </td>
              <td data-label="Verification">
                <span className="pair">
                  {POLICY_WORDS[task.policy].name}
                  <span className="small faint">{task.audits > 0 && plural(task.audits, "audit")}</span>
                </span>
              </td>
              <td data-label="Reward" className="right number">
                {amount(task.reward_wei, 4)}
              </td>
              {!isOfOne && (
                <td data-label="Requester" className="wide-only">
                  <AddressTag address={task.requester} />
                </td>
              )}
              <td data-label="Time" className="right number">
                {timeText(task, now)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function taskTitle(task: Pick<TaskSummary, "summary" | "manifest">): string {
  return task.summary.title ?? `manifest ${task.manifest.slice(2, 10)}`;
}

export function sizeText({ summary }: Pick<TaskSummary, "summary">): string {
  if (summary.error) return summary.error;
  const parts = [
    summary.parameters === null ? null : `${formatCount(summary.parameters)} parameters`,
    summary.records === null ? null : `${formatCount(summary.records)} records`,
    summary.epochs === null ? null : plural(Math.round(summary.epochs * 10) / 10, "epoch"),
  ];
  return parts.filter(Boolean).join(" · ");
}

function timeText(task: TaskSummary, now: number): string {
  if (isOver(task.state)) return formatAgo(task.ended_at ?? task.updated_at, now);
  if (task.deadline === null) return formatAgo(task.posted_at, now);
  return task.deadline > now ? `${formatDuration(task.deadline - now)} left` : "due";
}
