// A destination's conflict log.
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { client, unwrap } from "./client";
import { keys } from "./keys";
import type { LoggedChange } from "./types";

const CONFLICTS = "/api/v1/streams/{stream_id}/destinations/{destination_id}/conflicts" as const;

/** The newest first, a part at a time. */
export const conflictsQuery = (id: string, destinationId: string, kind?: LoggedChange["kind"]) =>
  infiniteQueryOptions({
    queryKey: [...keys.conflicts(id, destinationId), "list", kind],
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        client.GET(CONFLICTS, {
          params: {
            path: { stream_id: id, destination_id: destinationId },
            query: { limit: 50, cursor: pageParam, kind },
          },
          signal,
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    placeholderData: keepPreviousData,
    refetchInterval: 10_000,
    retry: false,
  });

export const conflictCountsQuery = (id: string, destinationId: string) =>
  queryOptions({
    queryKey: [...keys.conflicts(id, destinationId), "count"],
    queryFn: ({ signal }) =>
      unwrap(
        client.GET(`${CONFLICTS}:count`, {
          params: { path: { stream_id: id, destination_id: destinationId } },
          signal,
        }),
      ),
    refetchInterval: 10_000,
    retry: false,
  });

/** Read when somebody opens it, and not again by itself: each reading stands in the audit log. */
export const conflictQuery = (id: string, destinationId: string, conflictId: number) =>
  queryOptions({
    queryKey: [...keys.conflicts(id, destinationId), "one", conflictId],
    queryFn: ({ signal }) =>
      unwrap(
        client.GET(`${CONFLICTS}/{conflict_id}`, {
          params: { path: { stream_id: id, destination_id: destinationId, conflict_id: conflictId } },
          signal,
        }),
      ),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    refetchOnWindowFocus: false,
    retry: false,
  });
