// Searches in the log of a source.
import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { client, idempotencyKey, unwrap } from "./client";
import { keys } from "./keys";
import type { SearchCreate } from "./types";

const SEARCHES = "/api/v1/sources/{database_id}/searches" as const;
const SEARCH = `${SEARCHES}/{search_id}` as const;
const LOOK_MS = 1000;
/** No search has changes behind this number: who asks for them reads no rows. */
const BEHIND_ALL = 10_000;

/** The part of the source's log that is kept, and the searches in it. */
export const searchesQuery = (databaseId: string) =>
  queryOptions({
    queryKey: keys.searches(databaseId),
    queryFn: ({ signal }) =>
      unwrap(client.GET(SEARCHES, { params: { path: { database_id: databaseId } }, signal })),
    retry: false,
  });

/** How far a search is, until it has ended. */
export const searchQuery = (databaseId: string, searchId: string) =>
  queryOptions({
    queryKey: [...keys.search(databaseId, searchId), "progress"],
    queryFn: ({ signal }) =>
      unwrap(
        client.GET(SEARCH, {
          params: {
            path: { database_id: databaseId, search_id: searchId },
            query: { after: BEHIND_ALL, limit: 1 },
          },
          signal,
        }),
      ),
    refetchInterval: ({ state }) => (state.data?.state === "RUNNING" ? LOOK_MS : false),
    refetchOnWindowFocus: false,
    retry: false,
  });

/** The changes that an ended search has found, a part at a time. */
export const foundQuery = (databaseId: string, searchId: string) =>
  infiniteQueryOptions({
    queryKey: [...keys.search(databaseId, searchId), "changes"],
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        client.GET(SEARCH, {
          params: {
            path: { database_id: databaseId, search_id: searchId },
            query: { after: pageParam, limit: 100 },
          },
          signal,
        }),
      ),
    initialPageParam: 0,
    getNextPageParam: (page) => page.next_after ?? undefined,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });

/** One change with its values up to 64 KiB, and the SQL that undoes it. */
export const wholeChangeQuery = (databaseId: string, searchId: string, number: number) =>
  queryOptions({
    queryKey: [...keys.search(databaseId, searchId), "change", number],
    queryFn: async ({ signal }) => {
      const page = await unwrap(
        client.GET(SEARCH, {
          params: {
            path: { database_id: databaseId, search_id: searchId },
            query: { after: number - 1, limit: 1, whole: true },
          },
          signal,
        }),
      );
      return page.changes[0] ?? null;
    },
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false,
  });

/** SQL that undoes all that a search has found. Each reading stands in the audit log. */
export const undoQuery = (databaseId: string, searchId: string) =>
  queryOptions({
    queryKey: [...keys.search(databaseId, searchId), "undo"],
    queryFn: ({ signal }) =>
      unwrap(
        client.GET(`${SEARCH}:undo`, {
          params: { path: { database_id: databaseId, search_id: searchId } },
          parseAs: "text",
          signal,
        }),
      ),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    refetchOnWindowFocus: false,
    retry: false,
  });

export function useBeginSearch(databaseId: string) {
  return useMutation({
    mutationFn: (body: SearchCreate) =>
      unwrap(
        client.POST(SEARCHES, {
          params: { path: { database_id: databaseId }, header: idempotencyKey() },
          body,
        }),
      ),
  });
}

export function useEndSearch(databaseId: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (searchId: string) =>
      unwrap(client.DELETE(SEARCH, { params: { path: { database_id: databaseId, search_id: searchId } } })),
    onSuccess: (_, searchId) => cache.removeQueries({ queryKey: keys.search(databaseId, searchId) }),
  });
}
