import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { client, unwrap } from "./client";
import { keys } from "./keys";

/** Read from the engines each time, so only while a page shows it. */
export const transactionsQuery = (streamId: string) =>
  queryOptions({
    queryKey: keys.transactions(streamId),
    queryFn: ({ signal }) =>
      unwrap(
        client.GET("/api/v1/streams/{stream_id}/transactions", {
          params: { path: { stream_id: streamId } },
          signal,
        }),
      ),
    refetchInterval: 1000,
    retry: false,
  });

export const markersQuery = (streamId: string) =>
  queryOptions({
    queryKey: keys.markers(streamId),
    queryFn: async ({ signal }) =>
      (
        await unwrap(
          client.GET("/api/v1/streams/{stream_id}/markers", {
            params: { path: { stream_id: streamId } },
            signal,
          }),
        )
      ).markers,
    refetchInterval: 1000,
    retry: false,
  });

export function usePlaceMarker(streamId: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (label: string) =>
      unwrap(
        client.POST("/api/v1/streams/{stream_id}/markers", {
          body: { label },
          params: { path: { stream_id: streamId } },
        }),
      ),
    onSettled: () => cache.invalidateQueries({ queryKey: keys.markers(streamId) }),
  });
}
