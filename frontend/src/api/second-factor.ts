import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { client, unwrap } from "./client";
import type { components } from "./generated/schema";
import { keys } from "./keys";

type Schemas = components["schemas"];
/** The password, and a code of the second factor that is there. */
export type Proof = Schemas["SecondFactorProof"];

const ofUser = (userId: string) => ({ path: { user_id: userId } });

export function secondFactorQuery(userId: string) {
  return queryOptions({
    queryKey: keys.secondFactor(userId),
    queryFn: ({ signal }) =>
      unwrap(client.GET("/api/v1/users/{user_id}/second-factor", { params: ofUser(userId), signal })),
  });
}

/**
 * Returns a function that invalidates all queries that a change of the second factor affects. Call it when the user has
 * seen the answer: a page may close by it.
 */
export function useSecondFactorChanged(): () => Promise<unknown> {
  const cache = useQueryClient();
  return () =>
    Promise.all(
      [keys.session, keys.users, keys.secondFactors].map((queryKey) => cache.invalidateQueries({ queryKey })),
    );
}

export function usePrepareSecondFactor(userId: string) {
  return useMutation({
    mutationFn: (body: Proof) =>
      unwrap(client.POST("/api/v1/users/{user_id}:prepare-second-factor", { params: ofUser(userId), body })),
  });
}

export function useConfirmSecondFactor(userId: string) {
  return useMutation({
    mutationFn: (code: string) =>
      unwrap(
        client.POST("/api/v1/users/{user_id}:confirm-second-factor", {
          params: ofUser(userId),
          body: { code },
        }),
      ),
  });
}

export function useRenewRecoveryCodes(userId: string) {
  return useMutation({
    mutationFn: (body: Proof) =>
      unwrap(client.POST("/api/v1/users/{user_id}:renew-recovery-codes", { params: ofUser(userId), body })),
  });
}

export function useRemoveSecondFactor(userId: string) {
  const changed = useSecondFactorChanged();
  return useMutation({
    mutationFn: (body: Proof) =>
      unwrap(client.POST("/api/v1/users/{user_id}:remove-second-factor", { params: ofUser(userId), body })),
    onSuccess: changed,
  });
}

export function useResetSecondFactor() {
  const changed = useSecondFactorChanged();
  return useMutation({
    mutationFn: (userId: string) =>
      unwrap(client.POST("/api/v1/users/{user_id}:reset-second-factor", { params: ofUser(userId) })),
    onSettled: changed,
  });
}

export const accessPolicyQuery = queryOptions({
  queryKey: keys.accessPolicy,
  queryFn: ({ signal }) => unwrap(client.GET("/api/v1/access-policy", { signal })),
});

export function useUpdateAccessPolicy() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ demand, etag }: { demand: Schemas["Demand"]; etag: string }) =>
      unwrap(
        client.PATCH("/api/v1/access-policy", {
          params: { header: { "If-Match": etag } },
          body: { require_second_factor: demand },
        }),
      ),
    onSettled: () =>
      Promise.all(
        [keys.accessPolicy, keys.session, keys.secondFactors].map((queryKey) =>
          cache.invalidateQueries({ queryKey }),
        ),
      ),
  });
}
