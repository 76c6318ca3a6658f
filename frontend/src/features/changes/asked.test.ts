import { describe, expect, it } from "vitest";
import { bodyOf, faultsOf, NOTHING, nameOf, tableNamed } from "./asked";

const NOW = Date.parse("2026-11-30T12:00:00Z");

describe("tables by name", () => {
  it.each([
    ["public.orders", { schema: "public", table: "orders" }],
    ['"my.schema"."the ""odd"" one"', { schema: "my.schema", table: 'the "odd" one' }],
    ["public.with space", { schema: "public", table: "with space" }],
  ])("reads %s", (text, table) => {
    expect(tableNamed(text)).toEqual(table);
    expect(tableNamed(nameOf(table))).toEqual(table);
  });

  it.each(["orders", ".orders", "public.", 'public."orders', ""])("refuses %s", (text) => {
    expect(tableNamed(text)).toBeNull();
  });
});

describe("the request", () => {
  it("has what the form has, and nothing else", () => {
    const asked = {
      ...NOTHING,
      table: "public.orders",
      key: [
        { column: " id ", value: "5" },
        { column: "note", value: "" },
        { column: "", value: "" },
      ],
      range: "3600",
      xid: "771",
    };
    expect(faultsOf(asked)).toEqual({});
    expect(bodyOf(asked, "stream01", NOW)).toEqual({
      stream_id: "stream01",
      table: { schema: "public", table: "orders" },
      key: { id: "5", note: "" },
      xid: 771,
      from_time: "2026-11-30T11:00:00.000Z",
      limit: 1000,
    });
    expect(bodyOf({ ...NOTHING, range: "all" }, null, NOW)).toEqual({ limit: 1000 });
  });

  it("turns local times into UTC", () => {
    const asked = { ...NOTHING, range: "between", from: "2026-11-30T10:00:00" };
    const { from_time, to_time } = bodyOf(asked, null, NOW);
    expect(from_time).toBe(new Date("2026-11-30T10:00:00").toISOString());
    expect(to_time).toBeUndefined();
  });
});

describe("faults", () => {
  it.each([
    [{ table: "orders" }, "table"],
    [{ key: [{ column: "id", value: "5" }] }, "table"],
    [{ table: "a.b", key: [{ column: "", value: "5" }] }, "key"],
    [
      {
        table: "a.b",
        key: [
          { column: "x", value: "1" },
          { column: " x", value: "2" },
        ],
      },
      "key",
    ],
    [{ xid: "x" }, "xid"],
    [{ xid: "0" }, "xid"],
    [{ xid: "4294967296" }, "xid"],
    [{ range: "between" }, "from"],
    [{ range: "between", from: "2026-11-30T10:00", to: "2026-11-30T09:00" }, "to"],
  ])("of %o", (part, where) => {
    expect(Object.keys(faultsOf({ ...NOTHING, ...part }))).toEqual([where]);
  });
});
