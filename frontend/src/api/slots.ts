import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { client, unwrap } from "./client";
import { keys } from "./keys";

export const slotsQuery = queryOptions({
  queryKey: keys.slots,
  queryFn: async ({ signal }) => (await unwrap(client.GET("/api/v1/slots", { signal }))).servers,
  refetchInterval: 5000,
});

export function useDropSlot() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ databaseId, slot }: { databaseId: string; slot: string }) =>
      unwrap(
        client.DELETE("/api/v1/databases/{database_id}/slots/{slot_name}", {
          params: { path: { database_id: databaseId, slot_name: slot } },
        }),
      ),
    onSettled: () => cache.invalidateQueries({ queryKey: keys.slots }),
  });
}
