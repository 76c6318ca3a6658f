import { describe, expect, it } from "vitest";
import type { ErrorPolicy } from "@/api/types";
import { errorPolicies, initialCopy, parallelism } from "@/test/data";
import {
  anyFault,
  byComponent,
  byNeed,
  changedValues,
  defaults,
  parameterFault,
  rangeInWords,
} from "./parameter-values";

describe("parameters", () => {
  it.each([
    [4, null],
    [0, "At least 1."],
    [65, "At most 64."],
    [1.5, "Enter a whole number."],
    ["", "Enter a whole number."],
  ])("parallelism %s: %s", (value, fault) => {
    expect(parameterFault(parallelism, value)).toBe(fault);
  });

  it("sends only what differs", () => {
    const base = defaults([parallelism, initialCopy]);
    expect(changedValues(base, { parallelism: 8, initial_copy: true })).toEqual({ parallelism: 8 });
  });

  it("compares policies by what is in them", () => {
    const base = { error_policies: [{ action: "park" as const }] };
    expect(changedValues(base, { error_policies: [{ action: "park" }] })).toEqual({});
    expect(changedValues(base, { error_policies: [] })).toEqual({ error_policies: [] });
  });

  it.each<[ErrorPolicy, string | null]>([
    [{ action: "park" }, null],
    [{ action: "stop", error: "23505", schema: "public", table: "orders" }, null],
    [{ action: "retry", times: 100, delay_seconds: 0, after_retries: "stop" }, null],
    ...["235", "23p01", "unique_violation"].map((error): [ErrorPolicy, string] => [
      { action: "park", error },
      "The error is an SQLSTATE in upper case, such as 23505; the class of one, such as 23; or one of the codes in the list.",
    ]),
    [{ action: "park", table: "orders" }, "Name the schema and the table together."],
    [{ action: "retry", times: 101, delay_seconds: 1, after_retries: "park" }, "Retry 1 to 100 times."],
    [
      { action: "retry", times: 1, delay_seconds: 3601, after_retries: "park" },
      "Wait 0 to 3,600 s before each retry.",
    ],
  ])("policy %j: %s", (policy, fault) => {
    expect(parameterFault(errorPolicies, [policy])).toBe(fault);
  });

  it("finds a fault anywhere", () => {
    expect(anyFault([parallelism, initialCopy], { parallelism: 0 })).toBe(true);
    expect(anyFault([parallelism, initialCopy], {})).toBe(false);
  });

  it("says range, unit and default", () => {
    expect(rangeInWords(parallelism)).toBe("1 to 64 appliers, default 4");
    expect(rangeInWords(initialCopy)).toBe("default on");
    expect(rangeInWords(errorPolicies)).toBe("default none");
  });

  it("groups by component in order", () => {
    expect(byComponent([parallelism, initialCopy]).map(([component]) => component)).toEqual([
      "APPLY",
      "INSTANTIATION",
    ]);
  });
});

it("are basic when people ask about them, else advanced", () => {
  const rare = { ...parallelism, name: "metadata_cache_mb" };
  expect(byNeed([parallelism, rare, initialCopy])).toEqual({
    basic: [parallelism, initialCopy],
    advanced: [rare],
  });
});
