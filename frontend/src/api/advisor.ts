import {
  infiniteQueryOptions,
  keepPreviousData,
  queryOptions,
  useMutation,
  useQueryClient,
} from "@tanstack/react-query";
import { client, idempotencyKey, unwrap } from "./client";
import { keys } from "./keys";
import type { RunCreate, RunReason } from "./types";

export interface RunFilter {
  stream_id?: string;
  reason?: RunReason;
}

const RUNS_PER_PAGE = 50;

/** Newest first. Schedules and alerts take runs too, so the list is read again by itself. */
export const runsQuery = (filter: RunFilter) =>
  infiniteQueryOptions({
    queryKey: keys.advisorRunList(filter),
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        client.GET("/api/v1/advisor/runs", {
          params: { query: { ...filter, limit: RUNS_PER_PAGE, cursor: pageParam } },
          signal,
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    placeholderData: keepPreviousData,
    refetchInterval: 10_000,
  });

export const runQuery = (id: number) =>
  queryOptions({
    queryKey: keys.advisorRun(id),
    queryFn: ({ signal }) =>
      unwrap(client.GET("/api/v1/advisor/runs/{run_id}", { params: { path: { run_id: id } }, signal })),
    retry: false,
  });

/** The last seconds of live samples, or what was recorded between two times: nothing is written down. */
export type AnalysisScope = { stream_id: string } & (
  | { window_seconds: number }
  | { begin_at: string; end_at: string }
);

const LIVE_REFRESH_MS = 2000;

export const analysisQuery = (scope: AnalysisScope) =>
  queryOptions({
    queryKey: keys.advisorAnalysis(scope),
    queryFn: ({ signal }) =>
      unwrap(client.GET("/api/v1/advisor/analysis", { params: { query: scope }, signal })),
    refetchInterval: "window_seconds" in scope ? LIVE_REFRESH_MS : false,
    placeholderData: keepPreviousData,
    retry: false,
  });

export function useTakeRun() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (body: RunCreate) =>
      unwrap(client.POST("/api/v1/advisor/runs", { body, params: { header: idempotencyKey() } })),
    onSuccess: (run) => {
      cache.setQueryData(keys.advisorRun(run.id), run);
      return cache.invalidateQueries({ queryKey: [...keys.advisorRuns, "list"] });
    },
  });
}

export interface RunChange {
  body: { name?: string; note?: string; kept?: boolean };
  etag: string;
}

export function useUpdateRun(id: number) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ body, etag }: RunChange) =>
      unwrap(
        client.PATCH("/api/v1/advisor/runs/{run_id}", {
          body,
          params: { path: { run_id: id }, header: { "If-Match": etag } },
        }),
      ),
    onSettled: () => cache.invalidateQueries({ queryKey: keys.advisorRuns }),
  });
}

export function useDeleteRun(id: number) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: () =>
      unwrap(client.DELETE("/api/v1/advisor/runs/{run_id}", { params: { path: { run_id: id } } })),
    onSuccess: () => {
      cache.removeQueries({ queryKey: keys.advisorRun(id) });
      return cache.invalidateQueries({ queryKey: [...keys.advisorRuns, "list"] });
    },
  });
}

export const comparisonQuery = (before: number, after: number) =>
  queryOptions({
    queryKey: keys.advisorComparison(before, after),
    queryFn: ({ signal }) =>
      unwrap(client.GET("/api/v1/advisor/comparison", { params: { query: { before, after } }, signal })),
    retry: false,
  });
