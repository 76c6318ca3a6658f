import { describe, expect, it } from "vitest";
import {
  completeRules,
  hasSchema,
  isSelected,
  patternMatches,
  takesInsertsOnly,
  toggled,
  withInsertsOnly,
  withSchema,
} from "./matching";

describe("patternMatches", () => {
  it.each([
    ["*", "", true],
    ["*", "anything", true],
    ["orders", "orders", true],
    ["orders", "Orders", false],
    ["orders_?", "orders_1", true],
    ["orders_?", "orders_12", false],
    ["*_tmp", "a_tmp_tmp", true],
    ["a*b*c", "aXXbYYc", true],
    ["a*b*c", "aXXbYY", false],
    ["gr?e", "größe", false],
    ["?", "😀", true],
    ["gr??e", "grüne", true],
    ["[a-z]", "b", false],
  ])("%s against %s is %s", (pattern, name, matches) => {
    expect(patternMatches(pattern, name)).toBe(matches);
  });

  it("does not blow up on a hostile pattern", () => {
    expect(patternMatches("*a".repeat(60), "a".repeat(59))).toBe(false);
  });
});

describe("switching a table", () => {
  const orders = { schema: "public", table: "orders" };
  const everything = { include: [{ schema: "public", table: "*" }], exclude: [] };

  it("off adds an exact exclude pattern below a pattern", () => {
    const rules = toggled(everything, orders);
    expect(rules.exclude).toEqual([orders]);
    expect(isSelected(rules, orders)).toBe(false);
  });

  it("on again removes it", () => {
    expect(toggled(toggled(everything, orders), orders)).toEqual(everything);
  });

  it("on adds an exact include pattern when nothing matches", () => {
    const rules = toggled({ include: [], exclude: [] }, orders);
    expect(rules.include).toEqual([orders]);
    expect(toggled(rules, orders).include).toEqual([]);
  });

  it("never drops an exclude pattern that somebody wrote", () => {
    const rules = { include: [{ schema: "*", table: "*" }], exclude: [{ schema: "public", table: "ord*" }] };
    expect(toggled(rules, orders)).toEqual(rules);
  });
});

describe("completeRules", () => {
  it("leaves out what is not filled in yet", () => {
    const rules = {
      include: [
        { schema: "", table: "*" },
        { schema: "a", table: "b" },
      ],
      exclude: [],
    };
    expect(completeRules(rules).include).toEqual([{ schema: "a", table: "b" }]);
  });
});

describe("giving up updates and deletes", () => {
  const log = { schema: "public", table: "log" };
  const everything = { include: [{ schema: "public", table: "*" }], exclude: [] };

  it("is of one table, and can be taken back", () => {
    const given = withInsertsOnly(everything, log, true);
    expect(given.inserts_only).toEqual([log]);
    expect(takesInsertsOnly(given, log)).toBe(true);
    expect(takesInsertsOnly(given, { schema: "public", table: "orders" })).toBe(false);
    expect(withInsertsOnly(given, log, false).inserts_only).toEqual([]);
    expect(withInsertsOnly(given, log, true).inserts_only).toEqual([log]);
  });

  it("is sent, stays when another table is switched, and goes with its table", () => {
    const given = withInsertsOnly(everything, log, true);
    expect(completeRules(given).inserts_only).toEqual([log]);
    expect(completeRules(everything)).toEqual(everything);
    expect(toggled(given, { schema: "public", table: "orders" }).inserts_only).toEqual([log]);
    expect(toggled(given, log).inserts_only).toEqual([]);
    expect(withSchema(given, "other", true).inserts_only).toEqual([log]);
  });
});

describe("whole schemas", () => {
  const rules = {
    include: [{ schema: "public", table: "orders" }],
    exclude: [{ schema: "public", table: "log" }],
  };

  it("come and go, and leave rules about single tables alone", () => {
    expect(hasSchema(rules, "public")).toBe(false);
    const all = withSchema(rules, "public", true);
    expect(hasSchema(all, "public")).toBe(true);
    expect(isSelected(all, { schema: "public", table: "items" })).toBe(true);
    expect(isSelected(all, { schema: "public", table: "log" })).toBe(false);
    expect(withSchema(all, "public", false)).toEqual(rules);
  });
});
