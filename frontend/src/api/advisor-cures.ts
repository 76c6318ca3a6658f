import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { CURE_AT_WORK } from "@/lib/advisor";
import { allPages, client, idempotencyKey, unwrap } from "./client";
import { keys } from "./keys";
import type { AppliedCure } from "./types";

const MEASURING_REFRESH_MS = 2000;

/** Newest first. While one is being judged the list is read again every two seconds. */
export const curesQuery = (streamId?: string) =>
  queryOptions({
    queryKey: keys.advisorCureList(streamId),
    queryFn: ({ signal }) =>
      allPages((cursor) =>
        unwrap(
          client.GET("/api/v1/advisor/cures", {
            params: { query: { stream_id: streamId, limit: 500, cursor } },
            signal,
          }),
        ),
      ),
    refetchInterval: ({ state }: { state: { data?: AppliedCure[] } }) =>
      state.data?.some(({ state: now }) => CURE_AT_WORK.includes(now)) ? MEASURING_REFRESH_MS : 30_000,
  });

export interface CureChoice {
  run_id: number;
  finding_id: string;
  cure_index: number;
  measure_after_seconds: number;
  by_hand: boolean;
}

function useCuresChanged() {
  const cache = useQueryClient();
  return () =>
    Promise.all(
      [keys.advisorCures, keys.advisorRuns, ["streams"]].map((queryKey) =>
        cache.invalidateQueries({ queryKey, predicate: ({ queryKey: key }) => key[2] !== "samples" }),
      ),
    );
}

export function useApplyCure() {
  const changed = useCuresChanged();
  return useMutation({
    mutationFn: (body: CureChoice) =>
      unwrap(client.POST("/api/v1/advisor/cures", { body, params: { header: idempotencyKey() } })),
    onSettled: changed,
  });
}

export function useUndoCure() {
  const changed = useCuresChanged();
  return useMutation({
    mutationFn: (id: number) =>
      unwrap(client.POST("/api/v1/advisor/cures/{cure_id}:undo", { params: { path: { cure_id: id } } })),
    onSettled: changed,
  });
}
