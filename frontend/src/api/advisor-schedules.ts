import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { allPages, client, idempotencyKey, unwrap } from "./client";
import { keys } from "./keys";
import type { PolicyUpdate, ScheduleCreate, ScheduleUpdate } from "./types";

export const schedulesQuery = queryOptions({
  queryKey: keys.advisorSchedules,
  queryFn: ({ signal }) =>
    allPages((cursor) =>
      unwrap(client.GET("/api/v1/advisor/schedules", { params: { query: { limit: 500, cursor } }, signal })),
    ),
  refetchInterval: 10_000,
});

function useSchedulesChanged() {
  const cache = useQueryClient();
  return () => cache.invalidateQueries({ queryKey: keys.advisorSchedules });
}

export function useCreateSchedule() {
  const changed = useSchedulesChanged();
  return useMutation({
    mutationFn: (body: ScheduleCreate) =>
      unwrap(client.POST("/api/v1/advisor/schedules", { body, params: { header: idempotencyKey() } })),
    onSuccess: changed,
  });
}

export function useUpdateSchedule() {
  const changed = useSchedulesChanged();
  return useMutation({
    mutationFn: ({ id, etag, body }: { id: string; etag: string; body: ScheduleUpdate }) =>
      unwrap(
        client.PATCH("/api/v1/advisor/schedules/{schedule_id}", {
          body,
          params: { path: { schedule_id: id }, header: { "If-Match": etag } },
        }),
      ),
    onSettled: changed,
  });
}

export function useDeleteSchedule() {
  const changed = useSchedulesChanged();
  return useMutation({
    mutationFn: (id: string) =>
      unwrap(
        client.DELETE("/api/v1/advisor/schedules/{schedule_id}", { params: { path: { schedule_id: id } } }),
      ),
    onSettled: changed,
  });
}

export const policyQuery = queryOptions({
  queryKey: keys.advisorPolicy,
  queryFn: ({ signal }) => unwrap(client.GET("/api/v1/advisor/policy", { signal })),
});

export function useUpdatePolicy() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ body, etag }: { body: PolicyUpdate; etag: string }) =>
      unwrap(client.PATCH("/api/v1/advisor/policy", { body, params: { header: { "If-Match": etag } } })),
    onSuccess: (policy) => cache.setQueryData(keys.advisorPolicy, policy),
    onError: () => cache.invalidateQueries({ queryKey: keys.advisorPolicy }),
  });
}
