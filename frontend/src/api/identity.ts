import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { allPages, client, idempotencyKey, unwrap } from "./client";
import type { components } from "./generated/schema";
import { keys } from "./keys";

type Schemas = components["schemas"];

export const usersQuery = queryOptions({
  queryKey: keys.users,
  queryFn: ({ signal }) =>
    allPages((cursor) =>
      unwrap(client.GET("/api/v1/users", { params: { query: { limit: 500, cursor } }, signal })),
    ),
});

export const tokensQuery = queryOptions({
  queryKey: keys.tokens,
  queryFn: ({ signal }) =>
    allPages((cursor) =>
      unwrap(client.GET("/api/v1/tokens", { params: { query: { limit: 500, cursor } }, signal })),
    ),
});

export function useCreateUser() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (body: Schemas["UserCreate"]) =>
      unwrap(client.POST("/api/v1/users", { body, params: { header: idempotencyKey() } })),
    onSuccess: () => cache.invalidateQueries({ queryKey: keys.users }),
  });
}

export function useUpdateUser() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ id, body, etag }: { id: string; body: Schemas["UserUpdate"]; etag: string }) =>
      unwrap(
        client.PATCH("/api/v1/users/{user_id}", {
          body,
          params: { path: { user_id: id }, header: { "If-Match": etag } },
        }),
      ),
    onSettled: () => cache.invalidateQueries({ queryKey: keys.users }),
  });
}

export function useDeleteUser() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      unwrap(client.DELETE("/api/v1/users/{user_id}", { params: { path: { user_id: id } } })),
    onSettled: () => cache.invalidateQueries({ queryKey: keys.users }),
  });
}

export function useChangePassword() {
  return useMutation({
    mutationFn: ({ id, body }: { id: string; body: Schemas["PasswordChange"] }) =>
      unwrap(
        client.POST("/api/v1/users/{user_id}:change-password", { params: { path: { user_id: id } }, body }),
      ),
  });
}

export function useCreateToken() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (body: Schemas["TokenCreate"]) =>
      unwrap(client.POST("/api/v1/tokens", { body, params: { header: idempotencyKey() } })),
    onSuccess: () => cache.invalidateQueries({ queryKey: keys.tokens }),
  });
}

export function useRevokeToken() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      unwrap(client.DELETE("/api/v1/tokens/{token_id}", { params: { path: { token_id: id } } })),
    onSettled: () => cache.invalidateQueries({ queryKey: keys.tokens }),
  });
}
