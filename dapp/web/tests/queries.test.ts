import { expect, it } from "vitest";
import { resultQuery } from "~/api/queries";
import type { TaskSummary } from "~/api/types";

type State = TaskSummary["state"];

function askedAgainMs(state: State, available: boolean | null): unknown {
  const { refetchInterval } = resultQuery({ id: 7, state });
  const data = available === null ? undefined : { available };
  return typeof refetchInterval === "function"
    ? refetchInterval({ state: { data } } as never)
    : refetchInterval;
}

it.each<[string, State, boolean | null, number | false]>([
  ["while a settled task's is not published", "settled", false, 15_000],
  ["while it may still be settled", "submitted", false, 15_000],
  ["no more once it is there", "settled", true, false],
  ["not while the first answer is on its way", "settled", null, false],
  ["not where the task has failed", "failed", false, false],
])("a result is asked for %s", (_, state, available, wanted) => {
  expect(askedAgainMs(state, available)).toBe(wanted);
});
