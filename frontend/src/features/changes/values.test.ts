import { expect, it } from "vitest";
import type { Change, ChangedColumn, ChangedValue } from "@/api/types";
import { columnInWords, differs, keyInWords, shownColumns, valueInWords } from "./values";

const value = (text: string | null, facts: Partial<ChangedValue> = {}): ChangedValue => ({
  text,
  cut: false,
  masked: false,
  ...facts,
});
const column = (
  name: string,
  before: ChangedValue | null,
  after: ChangedValue | null,
  key = false,
): ChangedColumn => ({ name, type: "text", key, before, after });
const MASKED = value(null, { masked: true });

it("never shows what is not known as NULL or as empty", () => {
  expect([null, value(null), value(""), MASKED].map(valueInWords)).toEqual(["?", "NULL", "empty", "masked"]);
  expect(valueInWords(value("x".repeat(70)))).toBe(`${"x".repeat(60)}…`);
  expect(valueInWords(value("x", { cut: true }))).toBe("x…");
});

it("knows which columns an update has changed", () => {
  expect(differs(column("a", value("1"), value("2")))).toBe(true);
  expect(differs(column("a", value("1"), value("1")))).toBe(false);
  expect(differs(column("a", value(null), value(null)))).toBe(false);
  expect(differs(column("a", null, null))).toBe(false);
  expect(differs(column("a", null, value("1")))).toBeNull();
  expect(differs(column("a", MASKED, MASKED))).toBeNull();
  expect(differs(column("a", value("1", { cut: true }), value("1", { cut: true })))).toBeNull();
});

it("shows in the list what differs, and the key by itself", () => {
  const id = column("id", value("5"), value("5"), true);
  const update = {
    operation: "UPDATE",
    columns: [id, column("a", value("1"), value("2")), column("b", MASKED, MASKED), column("c", null, null)],
  } as Change;
  expect(keyInWords(update)).toBe("id = 5");
  expect(shownColumns(update).map((one) => columnInWords("UPDATE", one))).toEqual(["a: 1 → 2", "b: masked"]);
  const deletion = { operation: "DELETE", columns: [id, column("a", value("1"), null)] } as Change;
  expect(shownColumns(deletion).map((one) => columnInWords("DELETE", one))).toEqual(["a = 1"]);
});
