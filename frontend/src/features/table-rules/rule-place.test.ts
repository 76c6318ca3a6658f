import { describe, expect, it } from "vitest";
import type { RuleProblem } from "@/api/types";
import { markedLine } from "./rule-place";

const at = (line: number | null, column: number | null): RuleProblem => ({
  schema: "public",
  table: "orders",
  rule: "north",
  scope: "table",
  code: "rule_refused",
  message: "there is no such column",
  cure: "Correct it.",
  line,
  column,
  offset: null,
  certain: true,
});

describe("markedLine", () => {
  it("marks the word at the place", () => {
    expect(markedLine("id > 0 AND\n  regoin = 'north'", at(2, 3))).toEqual({
      before: "  ",
      marked: "regoin",
      after: " = 'north'",
    });
  });

  it("counts characters, not units of UTF-16", () => {
    const marked = markedLine("note = '🦉🦉' AND naem = 1", at(1, 17));
    expect(marked).toEqual({ before: "note = '🦉🦉' AND ", marked: "naem", after: " = 1" });
  });

  it("marks one character where there is no word, and nothing at the end", () => {
    expect(markedLine("a = )", at(1, 5))).toEqual({ before: "a = ", marked: ")", after: "" });
    expect(markedLine("a =", at(1, 4))).toEqual({ before: "a =", marked: "", after: "" });
  });

  it("has no place for a problem about the whole rule, nor in a text that has changed", () => {
    expect(markedLine("a = 1", at(null, null))).toBeNull();
    expect(markedLine("a = 1", at(2, 1))).toBeNull();
    expect(markedLine("a = 1", at(1, 9))).toBeNull();
  });
});
