import { describe, expect, it } from "vitest";
import {
  asText,
  byteRate,
  bytes,
  compactCount,
  counted,
  duration,
  exact,
  formatAgo,
  formatCount,
  latency,
  latencyMs,
  percent,
  rate,
  rows,
  UNKNOWN,
  wholeSeconds,
} from "./format";

const plain = (text: string) => text.replace(/[\u00a0\u202f]/g, " ");
const shown = (quantity: { value: string; unit: string }) => plain(asText(quantity));

describe("rows", () => {
  it("calls one row a row", () => {
    expect([rows(1), rows(2)].map(asText)).toEqual(["1\u00a0row", "2\u00a0rows"]);
  });
});

describe("what is not known yet", () => {
  it.each([null, undefined, Number.NaN])("is a dash without a unit, never 0 (%s)", (unknown) => {
    for (const format of [compactCount, bytes, byteRate, latency, latencyMs, duration, percent])
      expect(asText(format(unknown))).toBe(UNKNOWN);
    expect(asText(rate(unknown, "LCR"))).toBe(UNKNOWN);
    expect(formatCount(unknown)).toBe(UNKNOWN);
  });

  it("is told apart from zero", () => {
    expect(shown(rate(0, "LCR"))).toBe("0 LCR/s");
    expect(shown(bytes(0))).toBe("0 B");
    expect(shown(latency(0))).toBe("0 ms");
  });
});

describe("numbers carry their unit", () => {
  it.each([
    [rate(999, "LCR"), "999 LCR/s"],
    [rate(1000, "LCR"), "1 k LCR/s"],
    [rate(12_345, "LCR"), "12.3 k LCR/s"],
    [rate(1_234_567, "txn"), "1.23 M txn/s"],
    [rate(0.25, "LCR"), "0.25 LCR/s"],
    [rate(0.001, "LCR"), "< 0.01 LCR/s"],
    [bytes(1023), "1023 B"],
    [bytes(1024), "1 KiB"],
    [bytes(5 * 1024 ** 3), "5 GiB"],
    [byteRate(2048), "2 KiB/s"],
    [latency(850), "850 µs"],
    [latency(1500), "1.5 ms"],
    [latencyMs(3.2), "3.2 ms"],
    [latencyMs(2500), "2.5 s"],
    [duration(0.02), "20 ms"],
    [duration(59.4), "59.4 s"],
    [duration(61), "1 min 1 s"],
    [wholeSeconds(0.971), "1 s"],
    [wholeSeconds(0.2), "1 s"],
    [wholeSeconds(9.6), "10 s"],
    [duration(3600), "1 h"],
    [duration(90_061), "1 d 1 h"],
    [percent(0.5), "50 %"],
    [percent(0.0004), "< 0.1 %"],
    [percent(0), "0 %"],
    [percent(0.0999999), "10 %"],
    [bytes(0.4), "< 1 B"],
  ])("%o", (quantity, text) => {
    expect(shown(quantity)).toBe(text);
  });

  it("groups exact counts", () => {
    expect(plain(formatCount(1_234_567))).toBe("1 234 567");
  });
});

describe("how long ago", () => {
  const now = Date.parse("2026-11-21T12:00:00Z");
  it.each([
    ["2026-11-21T11:59:58Z", "just now"],
    ["2026-11-21T11:59:20Z", "40 s ago"],
    ["2026-11-21T10:58:00Z", "1 h ago"],
    [null, UNKNOWN],
    ["not a time", UNKNOWN],
  ])("%s is %s", (time, text) => {
    expect(formatAgo(time, now)).toBe(text);
  });
});

it("a count has the noun that fits, and thin spaces", () => {
  expect(counted(1, "table")).toBe("1 table");
  expect(counted(0, "table")).toBe("0 tables");
  expect(counted(1257, "transaction")).toBe("1\u202f257 transactions");
});

describe("what was set or measured", () => {
  it("has groups and no exponent", () => {
    expect([16_766_100, 1e21, 1.5e-7, 0, -1234.5].map(exact).map(plain)).toEqual([
      "16 766 100",
      "1 000 000 000 000 000 000 000",
      "0.00000015",
      "0",
      "-1 234.5",
    ]);
  });

  it("is a dash where it is not known, and text as it is", () => {
    expect([null, undefined, Number.NaN, "keys", true].map(exact)).toEqual([
      UNKNOWN,
      UNKNOWN,
      UNKNOWN,
      "keys",
      "true",
    ]);
  });
});
