/** What the pages ask for, with the keys under which it is kept. */

import {
  infiniteQueryOptions,
  keepPreviousData,
  type QueryClient,
  queryOptions,
  useQuery,
} from "@tanstack/react-query";
import { get, type Query } from "~/api/client";
import type {
  AccountView,
  ClassPage,
  Config,
  Examples,
  ManifestRead,
  MarketStats,
  NotificationPage,
  ResultView,
  Task,
  TaskPage,
  TaskSummary,
  Timeline,
  TraceView,
  WorkerPage,
  WorkerView,
} from "~/api/types";

export const configQuery = queryOptions({
  queryKey: ["config"],
  queryFn: ({ signal }) => get<Config>("/config", {}, signal),
  staleTime: Number.POSITIVE_INFINITY,
});

export const statsQuery = queryOptions({
  queryKey: ["market", "stats"],
  queryFn: ({ signal }) => get<MarketStats>("/stats", {}, signal),
});

export const classesQuery = queryOptions({
  queryKey: ["market", "classes"],
  queryFn: async ({ signal }) => (await get<ClassPage>("/classes", {}, signal)).items,
});

export const examplesQuery = queryOptions({
  queryKey: ["examples"],
  queryFn: async ({ signal }) => (await get<Examples>("/examples", {}, signal)).items,
  staleTime: 60_000,
});

export function tasksQuery(filters: Query) {
  return queryOptions({
    queryKey: ["market", "tasks", filters],
    queryFn: ({ signal }) => get<TaskPage>("/tasks", filters, signal),
    placeholderData: keepPreviousData,
  });
}

const MINE_AT_ONCE = 20;

/** All tasks of a requester, as many as were asked for. */
export function postedQuery(requester: string) {
  return infiniteQueryOptions({
    queryKey: ["market", "tasks", "of", requester],
    queryFn: ({ pageParam: cursor, signal }) =>
      get<TaskPage>("/tasks", { requester, cursor, limit: MINE_AT_ONCE }, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });
}

export function notificationsQuery(address: string) {
  return infiniteQueryOptions({
    queryKey: ["notifications", address],
    queryFn: ({ pageParam: cursor, signal }) => get<NotificationPage>("/notifications", { cursor }, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });
}

export function workersQuery(filters: Query) {
  return queryOptions({
    queryKey: ["market", "workers", filters],
    queryFn: ({ signal }) => get<WorkerPage>("/workers", filters, signal),
    placeholderData: keepPreviousData,
  });
}

export function workerQuery(address: string) {
  return queryOptions({
    queryKey: ["worker", address],
    queryFn: ({ signal }) => get<WorkerView>(`/workers/${address}`, {}, signal),
  });
}

export function accountQuery(address: string | undefined) {
  return queryOptions({
    queryKey: ["account", address],
    queryFn: ({ signal }) => get<AccountView>(`/accounts/${address}`, {}, signal),
    enabled: Boolean(address),
  });
}

export const taskKeys = (id: number) => ({
  all: ["task", id] as const,
  part: (name: string) => ["task", id, name],
});

export function taskQuery(id: number) {
  return queryOptions({
    queryKey: taskKeys(id).part("view"),
    queryFn: ({ signal }) => get<Task>(`/tasks/${id}`, {}, signal),
  });
}

export function timelineQuery(id: number) {
  return queryOptions({
    queryKey: taskKeys(id).part("timeline"),
    queryFn: ({ signal }) => get<Timeline>(`/tasks/${id}/timeline`, {}, signal),
  });
}

export function traceQuery(id: number) {
  return queryOptions({
    queryKey: taskKeys(id).part("trace"),
    queryFn: ({ signal }) => get<TraceView>(`/tasks/${id}/trace`, {}, signal),
  });
}

const UNPUBLISHED_MS = 15_000;

/** Publishing is no event of the chain, so what is not there yet is asked for; what was refused need not come. */
export function resultQuery({ id, state }: Pick<TaskSummary, "id" | "state">) {
  const mayCome = state !== "failed" && state !== "cancelled";
  return queryOptions({
    queryKey: taskKeys(id).part("result"),
    queryFn: ({ signal }) => get<ResultView>(`/tasks/${id}/result`, {}, signal),
    refetchInterval: ({ state: { data } }) => mayCome && data?.available === false && UNPUBLISHED_MS,
  });
}

export function manifestQuery(id: number) {
  return queryOptions({
    queryKey: ["manifest-of", id],
    queryFn: ({ signal }) => get<ManifestRead>(`/tasks/${id}/manifest`, {}, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** The configuration, which is there once the page is shown. */
export function useConfig(): Config {
  const { data } = useQuery(configQuery);
  if (!data) throw new Error("the configuration is not loaded");
  return data;
}

export function forgetTask(client: QueryClient, id: number): void {
  void client.invalidateQueries({ queryKey: taskKeys(id).all });
  void client.invalidateQueries({ queryKey: ["market"] });
}
