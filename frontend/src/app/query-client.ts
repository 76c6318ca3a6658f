import { QueryClient } from "@tanstack/react-query";
import { ProblemError } from "@/api/problem";

/** Reads are tried again when the control plane did not answer; what it refused stays refused. */
function worthAnotherTry(failures: number, error: unknown): boolean {
  if (error instanceof ProblemError && error.problem.status >= 400 && error.problem.status < 500)
    return false;
  return failures < 2;
}

export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: { retry: worthAnotherTry, retryDelay: 1000, staleTime: 1000 },
      mutations: { retry: false },
    },
  });
}
