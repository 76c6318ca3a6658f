import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { allPages, client, idempotencyKey, unwrap } from "./client";
import type { components } from "./generated/schema";
import { keys } from "./keys";
import type { DatabaseCreate } from "./types";

export type DatabaseTest = components["schemas"]["DatabaseTestRequest"];
export type DatabaseUpdate = components["schemas"]["DatabaseUpdate"];
export type DatabaseRole = "source" | "destination";

const LIMIT = 500;

export const databasesQuery = queryOptions({
  queryKey: keys.databases,
  queryFn: ({ signal }) =>
    allPages((cursor) =>
      unwrap(client.GET("/api/v1/databases", { params: { query: { limit: LIMIT, cursor } }, signal })),
    ),
});

export const databaseQuery = (id: string) =>
  queryOptions({
    queryKey: keys.database(id),
    queryFn: ({ signal }) =>
      unwrap(
        client.GET("/api/v1/databases/{database_id}", { params: { path: { database_id: id } }, signal }),
      ),
  });

export const tablesQuery = (id: string) =>
  queryOptions({
    queryKey: keys.tables(id),
    queryFn: ({ signal }) =>
      allPages((cursor) =>
        unwrap(
          client.GET("/api/v1/databases/{database_id}/tables", {
            params: { path: { database_id: id }, query: { limit: 1000, cursor } },
            signal,
          }),
        ),
      ),
    retry: false,
    staleTime: 30_000,
  });

export const columnsQuery = (id: string, { schema, table }: { schema: string; table: string }) =>
  queryOptions({
    queryKey: keys.columns(id, schema, table),
    queryFn: ({ signal }) =>
      unwrap(
        client.GET("/api/v1/databases/{database_id}/columns", {
          params: { path: { database_id: id }, query: { schema, table } },
          signal,
        }),
      ),
    retry: false,
    staleTime: 30_000,
  });

export const databasePreflightQuery = (id: string, role: DatabaseRole) =>
  queryOptions({
    queryKey: keys.databasePreflight(id, role),
    queryFn: ({ signal }) =>
      unwrap(
        client.GET("/api/v1/databases/{database_id}/preflight", {
          params: { path: { database_id: id }, query: { role } },
          signal,
        }),
      ),
    retry: false,
    refetchOnWindowFocus: false,
  });

export function useTestConnection() {
  return useMutation({
    mutationFn: (body: DatabaseTest) => unwrap(client.POST("/api/v1/databases:test", { body })),
  });
}

export function useTestDatabase() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      unwrap(client.POST("/api/v1/databases/{database_id}/test", { params: { path: { database_id: id } } })),
    onSettled: () => cache.invalidateQueries({ queryKey: keys.databases }),
  });
}

/** The test follows, so that its result is kept with the database: else lists would call it not tested. */
export function useCreateDatabase() {
  const cache = useQueryClient();
  const test = useTestDatabase();
  return useMutation({
    mutationFn: (body: DatabaseCreate) =>
      unwrap(client.POST("/api/v1/databases", { body, params: { header: idempotencyKey() } })),
    onSuccess: ({ id }) => {
      test.mutate(id);
      return cache.invalidateQueries({ queryKey: keys.databases });
    },
  });
}

export function useUpdateDatabase(id: string) {
  const cache = useQueryClient();
  const test = useTestDatabase();
  return useMutation({
    mutationFn: ({ body, etag }: { body: DatabaseUpdate; etag: string }) =>
      unwrap(
        client.PATCH("/api/v1/databases/{database_id}", {
          body,
          params: { path: { database_id: id }, header: { "If-Match": etag } },
        }),
      ),
    // A name is no connection.
    onSuccess: (_, { body }) => {
      if (Object.keys(body).some((field) => field !== "name")) test.mutate(id);
    },
    onSettled: () => cache.invalidateQueries({ queryKey: keys.databases }),
  });
}

export function useDeleteDatabase() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      unwrap(client.DELETE("/api/v1/databases/{database_id}", { params: { path: { database_id: id } } })),
    onSuccess: () => cache.invalidateQueries({ queryKey: keys.databases }),
  });
}
