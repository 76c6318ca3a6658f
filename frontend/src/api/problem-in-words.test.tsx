import { describe, expect, it } from "vitest";
import { ProblemError } from "./problem";
import { problemInWords } from "./problem-in-words";

describe("problemInWords", () => {
  it("keeps everything that helps a person", () => {
    const problem = {
      type: "urn:thalweg:problem:preflight_failed",
      title: "The databases are not ready for this stream",
      status: 409,
      detail: "1 check failed.",
      instance: "/api/v1/streams",
      code: "preflight_failed",
      cure: "Cure what failed.",
      sql: null,
      errors: [
        {
          pointer: "/source_id",
          code: "wal_level",
          message: "It is replica.",
          cure: "Set it.",
          sql: "ALTER",
        },
      ],
      checks: [],
    };
    expect(problemInWords(new ProblemError(problem, "req-1"))).toEqual({
      title: problem.title,
      message: "1 check failed.",
      cure: "Cure what failed.",
      sql: null,
      code: "preflight_failed",
      facts: ["request req-1"],
      parts: [{ pointer: "/source_id", message: "It is replica.", cure: "Set it.", sql: "ALTER" }],
    });
  });

  it("makes words of anything that was thrown", () => {
    expect(problemInWords(new Error("boom"))).toMatchObject({ message: "boom", code: "console_error" });
    expect(problemInWords("boom").cure).toBeTruthy();
  });
});
