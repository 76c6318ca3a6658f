import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { allPages, client, idempotencyKey, unwrap } from "./client";
import { keys } from "./keys";
import type { Operation } from "./types";

export interface OperationFilter {
  target_id?: string;
  /** Unique in its stream: it goes with target_id. */
  destination_id?: string;
  state?: Operation["state"];
}

export const operationsQuery = (filter: OperationFilter) =>
  infiniteQueryOptions({
    queryKey: [...keys.operations, "list", filter],
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        client.GET("/api/v1/operations", {
          params: { query: { ...filter, limit: 50, cursor: pageParam } },
          signal,
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    refetchInterval: 5000,
  });

/** The latest of one stream, for those that have not finished. */
export const streamOperationsQuery = (streamId: string) =>
  queryOptions({
    queryKey: [...keys.operations, streamId],
    queryFn: async ({ signal }) =>
      (
        await unwrap(
          client.GET("/api/v1/operations", { params: { query: { target_id: streamId, limit: 20 } }, signal }),
        )
      ).items,
    refetchInterval: 5000,
  });

export const auditQuery = infiniteQueryOptions({
  queryKey: keys.audit,
  queryFn: ({ pageParam, signal }) =>
    unwrap(client.GET("/api/v1/audit", { params: { query: { limit: 50, cursor: pageParam } }, signal })),
  initialPageParam: undefined as string | undefined,
  getNextPageParam: (page) => page.next_cursor ?? undefined,
});

export const enginesQuery = queryOptions({
  queryKey: keys.engines,
  queryFn: ({ signal }) =>
    allPages((cursor) =>
      unwrap(client.GET("/api/v1/engines", { params: { query: { limit: 500, cursor } }, signal })),
    ),
  refetchInterval: 5000,
});

export const topologyQuery = queryOptions({
  queryKey: keys.topology,
  queryFn: ({ signal }) => unwrap(client.GET("/api/v1/topology", { signal })),
  refetchInterval: 3000,
});

export function useCreateEnrolment() {
  return useMutation({
    mutationFn: (minutes: number) =>
      unwrap(
        client.POST("/api/v1/engines/enrolments", {
          body: { expires_in_minutes: minutes },
          params: { header: idempotencyKey() },
        }),
      ),
  });
}

export function useDeleteEngine() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      unwrap(client.DELETE("/api/v1/engines/{engine_id}", { params: { path: { engine_id: id } } })),
    onSettled: () => cache.invalidateQueries({ queryKey: keys.engines }),
  });
}

export function useDropUnknownStream() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ id, streamId }: { id: string; streamId: string }) =>
      unwrap(
        client.POST("/api/v1/engines/{engine_id}:drop-stream", {
          params: { path: { engine_id: id } },
          body: { stream_id: streamId },
        }),
      ),
    onSettled: () => cache.invalidateQueries({ queryKey: keys.engines }),
  });
}

export function useUpdateEngine() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ id, etag, address }: { id: string; etag: string; address: string | null }) =>
      unwrap(
        client.PATCH("/api/v1/engines/{engine_id}", {
          params: { path: { engine_id: id }, header: { "If-Match": etag } },
          body: { propagation_address: address },
        }),
      ),
    onSettled: () => cache.invalidateQueries({ queryKey: keys.engines }),
  });
}
