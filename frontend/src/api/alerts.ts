import {
  infiniteQueryOptions,
  type QueryClient,
  queryOptions,
  useMutation,
  useQueryClient,
} from "@tanstack/react-query";
import { allPages, client, idempotencyKey, unwrap } from "./client";
import type { components } from "./generated/schema";
import { keys } from "./keys";

type Schemas = components["schemas"];

// Events bring what changes; without them (Redis away) the picture is at most this old.
const REFRESH_MS = 15_000;

export const alertCountsQuery = queryOptions({
  queryKey: keys.alertCounts,
  queryFn: ({ signal }) => unwrap(client.GET("/api/v1/alerts/counts", { signal })),
  refetchInterval: REFRESH_MS,
});

/** Pending and firing ones: there are few. */
export const openAlertsQuery = queryOptions({
  queryKey: keys.openAlerts,
  queryFn: ({ signal }) =>
    allPages((cursor) =>
      unwrap(
        client.GET("/api/v1/alerts", { params: { query: { state: "open", limit: 500, cursor } }, signal }),
      ),
    ),
  refetchInterval: REFRESH_MS,
});

export const alertHistoryQuery = infiniteQueryOptions({
  queryKey: keys.alertHistory,
  queryFn: ({ pageParam, signal }) =>
    unwrap(
      client.GET("/api/v1/alerts", {
        params: { query: { state: "resolved", limit: 50, cursor: pageParam } },
        signal,
      }),
    ),
  initialPageParam: undefined as string | undefined,
  getNextPageParam: (page) => page.next_cursor ?? undefined,
});

export const alertRulesQuery = queryOptions({
  queryKey: keys.alertRules,
  queryFn: async ({ signal }) => (await unwrap(client.GET("/api/v1/alerts/rules", { signal }))).rules,
});

export const silencesQuery = queryOptions({
  queryKey: keys.silences,
  queryFn: async ({ signal }) => (await unwrap(client.GET("/api/v1/alerts/silences", { signal }))).items,
  refetchInterval: REFRESH_MS,
});

export const channelsQuery = queryOptions({
  queryKey: keys.channels,
  queryFn: ({ signal }) =>
    allPages((cursor) =>
      unwrap(client.GET("/api/v1/alerts/channels", { params: { query: { limit: 500, cursor } }, signal })),
    ),
  refetchInterval: REFRESH_MS,
});

export const deliveriesQuery = infiniteQueryOptions({
  queryKey: keys.deliveries,
  queryFn: ({ pageParam, signal }) =>
    unwrap(
      client.GET("/api/v1/alerts/deliveries", {
        params: { query: { limit: 50, cursor: pageParam } },
        signal,
      }),
    ),
  initialPageParam: undefined as string | undefined,
  getNextPageParam: (page) => page.next_cursor ?? undefined,
  refetchInterval: REFRESH_MS,
});

/** Everything that shows which alerts there are. */
export function alertsChanged(cache: QueryClient): void {
  for (const queryKey of [keys.alertCounts, keys.openAlerts, keys.alertHistory, keys.deliveries])
    void cache.invalidateQueries({ queryKey });
}

export function useAcknowledge() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ id, note, undo }: { id: string; note: string; undo: boolean }) => {
      const params = { path: { alert_id: Number(id) } };
      return unwrap(
        undo
          ? client.POST("/api/v1/alerts/{alert_id}/unacknowledge", { params })
          : client.POST("/api/v1/alerts/{alert_id}/acknowledge", { params, body: { note } }),
      );
    },
    onSettled: () => alertsChanged(cache),
  });
}

export function useSetRule() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({
      rule,
      streamId,
      body,
    }: {
      rule: Schemas["AlertRule"];
      streamId: string | null;
      body: Schemas["AlertRuleSettings"];
    }) =>
      unwrap(
        streamId === null
          ? client.PUT("/api/v1/alerts/rules/{rule}", {
              params: { path: { rule: rule.id }, header: { "If-Match": rule.etag } },
              body,
            })
          : client.PUT("/api/v1/alerts/rules/{rule}/streams/{stream_id}", {
              params: { path: { rule: rule.id, stream_id: streamId } },
              body,
            }),
      ),
    onSettled: () => cache.invalidateQueries({ queryKey: keys.alertRules }),
  });
}

export function useForgetStreamRule() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ rule, streamId }: { rule: Schemas["AlertRuleId"]; streamId: string }) =>
      unwrap(
        client.DELETE("/api/v1/alerts/rules/{rule}/streams/{stream_id}", {
          params: { path: { rule, stream_id: streamId } },
        }),
      ),
    onSettled: () => cache.invalidateQueries({ queryKey: keys.alertRules }),
  });
}

function silencesChanged(cache: QueryClient): void {
  void cache.invalidateQueries({ queryKey: keys.silences });
  alertsChanged(cache);
}

export function useCreateSilence() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (body: Schemas["AlertSilenceCreate"]) =>
      unwrap(client.POST("/api/v1/alerts/silences", { body, params: { header: idempotencyKey() } })),
    onSuccess: () => silencesChanged(cache),
  });
}

export function useEndSilence() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      unwrap(client.DELETE("/api/v1/alerts/silences/{silence_id}", { params: { path: { silence_id: id } } })),
    onSettled: () => silencesChanged(cache),
  });
}

function channelsChanged(cache: QueryClient): void {
  void cache.invalidateQueries({ queryKey: keys.channels });
  void cache.invalidateQueries({ queryKey: keys.deliveries });
}

export type ChannelCreate =
  | Schemas["WebhookChannelCreate"]
  | Schemas["EmailChannelCreate"]
  | Schemas["LogChannelCreate"];

export function useCreateChannel() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (body: ChannelCreate) =>
      unwrap(client.POST("/api/v1/alerts/channels", { body, params: { header: idempotencyKey() } })),
    onSuccess: () => channelsChanged(cache),
  });
}

export function useUpdateChannel() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ id, etag, body }: { id: string; etag: string; body: Schemas["AlertChannelUpdate"] }) =>
      unwrap(
        client.PATCH("/api/v1/alerts/channels/{channel_id}", {
          params: { path: { channel_id: id }, header: { "If-Match": etag } },
          body,
        }),
      ),
    onSettled: () => channelsChanged(cache),
  });
}

export function useDeleteChannel() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      unwrap(client.DELETE("/api/v1/alerts/channels/{channel_id}", { params: { path: { channel_id: id } } })),
    onSettled: () => channelsChanged(cache),
  });
}

export function useTestChannel() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      unwrap(
        client.POST("/api/v1/alerts/channels/{channel_id}/test", { params: { path: { channel_id: id } } }),
      ),
    onSettled: () => channelsChanged(cache),
  });
}

export function useRetryDelivery() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      unwrap(
        client.POST("/api/v1/alerts/deliveries/{delivery_id}/retry", {
          params: { path: { delivery_id: Number(id) } },
        }),
      ),
    onSettled: () => channelsChanged(cache),
  });
}
