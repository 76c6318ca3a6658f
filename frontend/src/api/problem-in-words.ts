import { asProblem, ProblemError } from "./problem";

/** A failure as ui/problem-alert shows it. */
export function problemInWords(error: unknown) {
  const problem = asProblem(error);
  const requestId = error instanceof ProblemError ? error.requestId : null;
  return {
    title: problem.title,
    message: problem.detail,
    cure: problem.cure ?? null,
    sql: problem.sql ?? null,
    code: problem.code,
    facts: requestId ? [`request ${requestId}`] : [],
    parts: (problem.errors ?? []).map(({ pointer, message, cure, sql }) => ({ pointer, message, cure, sql })),
  };
}
