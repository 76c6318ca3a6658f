import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { client, setCsrfToken, unwrap } from "./client";
import { keys } from "./keys";
import { ProblemError } from "./problem";
import type { Session } from "./types";

async function readSession(): Promise<Session | null> {
  try {
    const session = await unwrap(client.GET("/api/v1/session"));
    setCsrfToken(session.csrf_token);
    return session;
  } catch (error) {
    if (error instanceof ProblemError && error.problem.status === 401) return null;
    throw error;
  }
}

/** The session, or null when nobody is logged in. */
export const sessionQuery = queryOptions({
  queryKey: keys.session,
  queryFn: readSession,
  staleTime: Number.POSITIVE_INFINITY,
  retry: false,
});

function useLoggedIn() {
  const cache = useQueryClient();
  return (session: Session) => {
    setCsrfToken(session.csrf_token);
    cache.setQueryData(keys.session, session);
  };
}

/** Fails with the problem second_factor_required where a code is wanted: see useVerifyCode. */
export function useLogin() {
  const onSuccess = useLoggedIn();
  return useMutation({
    mutationFn: (body: { name: string; password: string }) =>
      unwrap(client.POST("/api/v1/session", { body })),
    onSuccess,
  });
}

/** The login's second step. The cookie of the first one goes with it. */
export function useVerifyCode() {
  const onSuccess = useLoggedIn();
  return useMutation({
    mutationFn: (code: string) => unwrap(client.POST("/api/v1/session:verify-code", { body: { code } })),
    onSuccess,
  });
}

export function useLogout() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: () => unwrap(client.DELETE("/api/v1/session")),
    onSuccess: () => {
      setCsrfToken(null);
      cache.clear();
      cache.setQueryData(keys.session, null);
    },
  });
}
