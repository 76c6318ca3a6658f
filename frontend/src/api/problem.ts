import type { Problem } from "./types";

/** Thrown by every failed call: the API's problem details, or one made here when the API did not answer. */
export class ProblemError extends Error {
  readonly problem: Problem;
  readonly requestId: string | null;

  constructor(problem: Problem, requestId: string | null = null) {
    super(problem.detail || problem.title);
    this.name = "ProblemError";
    this.problem = problem;
    this.requestId = requestId;
  }
}

function isProblem(body: unknown): body is Problem {
  return typeof body === "object" && body !== null && "title" in body && "code" in body;
}

export function problemFromResponse(status: number, body: unknown, path: string): Problem {
  if (isProblem(body)) return body;
  return {
    type: "about:blank",
    title: "The console does not understand the control plane's answer",
    status,
    detail: `HTTP status ${status} for ${path}.`,
    instance: path,
    code: "unexpected_answer",
    cure: "Reload the page. If it happens again, check the control plane's log.",
    sql: null,
    errors: [],
    checks: [],
  };
}

export function unreachableProblem(path: string): Problem {
  return {
    type: "about:blank",
    title: "The control plane cannot be reached",
    status: 0,
    detail: "The browser got no answer. Replication does not depend on it; the console just cannot show it.",
    instance: path,
    code: "control_plane_unreachable",
    cure: "Check that the control plane is running (`make status`) and that the network is up, then try again.",
    sql: null,
    errors: [],
    checks: [],
  };
}

export function asProblem(error: unknown): Problem {
  if (error instanceof ProblemError) return error.problem;
  return {
    type: "about:blank",
    title: "Something went wrong in the console",
    status: 0,
    detail: error instanceof Error ? error.message : String(error),
    instance: window.location.pathname,
    code: "console_error",
    cure: "Reload the page.",
    sql: null,
    errors: [],
    checks: [],
  };
}
