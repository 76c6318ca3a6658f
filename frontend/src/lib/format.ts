// Numbers for people. Every function takes null or undefined for "not known yet" and answers "–", never 0.

export const UNKNOWN = "–";

export type Maybe = number | null | undefined;

/** A number split from its unit, so that a page can set the unit smaller. `unit` is "" when there is none. */
export interface Quantity {
  value: string;
  unit: string;
}

const unknownQuantity: Quantity = { value: UNKNOWN, unit: "" };

function known(n: Maybe): n is number {
  return n !== null && n !== undefined && Number.isFinite(n);
}

// Made once: to make a formatter costs a hundred times what it costs to use one, and charts do so for every tick.
const format = (digits: number) =>
  new Intl.NumberFormat("en-US", { maximumFractionDigits: digits, useGrouping: false });
const [whole, tenths, hundredths] = [format(0), format(1), format(2)];

function threeDigits(n: number): string {
  const size = Math.abs(n);
  if (size === 0) return "0";
  if (size < 0.01) return "< 0.01";
  return (size < 10 ? hundredths : size < 100 ? tenths : whole).format(n);
}

function scaled(n: number, base: number, prefixes: string[]): { value: string; prefix: string } {
  let step = 0;
  let rest = n;
  while (Math.abs(rest) >= base * (base === 1000 ? 1 : 0.9995) && step < prefixes.length - 1) {
    rest /= base;
    step += 1;
  }
  return { value: threeDigits(rest), prefix: prefixes[step] ?? "" };
}

/** Exact whole number with thin groups: 1 234 567. */
export function formatCount(n: Maybe): string {
  if (!known(n)) return UNKNOWN;
  return Math.round(n).toLocaleString("en-US").replaceAll(",", "\u202f");
}

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 3 });
const small = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });

/** A value as it was set or measured: numbers with thin groups and never with an exponent, other things as text. */
export function exact(value: unknown): string {
  if (value === null || value === undefined) return UNKNOWN;
  if (typeof value !== "number") return String(value);
  if (!Number.isFinite(value)) return UNKNOWN;
  return (Math.abs(value) < 1 ? small : grouped).format(value).replaceAll(",", "\u202f");
}

/** "8 of 16 384 LCRs": exact, both in the same unit. */
export function doneOf(done: Maybe, total: Maybe, unit = ""): string {
  return `${formatCount(done)} of ${formatCount(total)}${unit && `\u00a0${unit}`}`;
}

/** "1 table", "1 234 tables": exact, with the noun that fits. */
export function counted(n: number, noun: string): string {
  return `${formatCount(n)} ${n === 1 ? noun : `${noun}s`}`;
}

/** Rounded to three digits with a decimal prefix: 12.3 k. */
export function compactCount(n: Maybe, unit = ""): Quantity {
  if (!known(n)) return unknownQuantity;
  const { value, prefix } = scaled(n, 1000, ["", "k", "M", "G", "T"]);
  return { value: prefix ? `${value}\u202f${prefix}` : value, unit };
}

export function rows(n: Maybe): Quantity {
  return compactCount(n, n === 1 ? "row" : "rows");
}

/** A rate in `unit` a second. */
export function rate(n: Maybe, unit: string): Quantity {
  return compactCount(n, `${unit}/s`);
}

/** Bytes in binary prefixes. There is no part of a byte. */
export function bytes(n: Maybe): Quantity {
  if (!known(n)) return unknownQuantity;
  if (Math.abs(n) < 1 && n !== 0) return { value: "< 1", unit: "B" };
  const { value, prefix } = scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
  return { value, unit: prefix };
}

export function byteRate(n: Maybe): Quantity {
  const quantity = bytes(n);
  return quantity.unit ? { value: quantity.value, unit: `${quantity.unit}/s` } : quantity;
}

/** Microseconds as µs, ms or s. */
export function latency(us: Maybe): Quantity {
  if (!known(us)) return unknownQuantity;
  if (us === 0) return { value: "0", unit: "ms" };
  if (us < 1000) return { value: threeDigits(us), unit: "µs" };
  if (us < 1_000_000) return { value: threeDigits(us / 1000), unit: "ms" };
  return duration(us / 1_000_000);
}

/** Milliseconds, as the API gives latencies. */
export function latencyMs(ms: Maybe): Quantity {
  return latency(known(ms) ? ms * 1000 : null);
}

/** Seconds as s, min, h or d; two parts above a minute. */
export function duration(seconds: Maybe): Quantity {
  if (!known(seconds)) return unknownQuantity;
  if (seconds < 1) return { value: threeDigits(seconds * 1000), unit: "ms" };
  if (seconds < 59.5) return { value: threeDigits(seconds), unit: "s" };
  const whole = Math.round(seconds);
  const parts: Array<[number, string]> = [
    [Math.floor(whole / 86_400), "d"],
    [Math.floor((whole % 86_400) / 3600), "h"],
    [Math.floor((whole % 3600) / 60), "min"],
    [whole % 60, "s"],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  const [major, minor] = [parts[first], parts[first + 1]];
  if (!major) return { value: "0", unit: "s" };
  if (!minor || minor[0] === 0) return { value: String(major[0]), unit: major[1] };
  return { value: `${major[0]} ${major[1]} ${minor[0]}`, unit: minor[1] };
}

/** As duration, without parts of a second: at least 1 s. */
export function wholeSeconds(seconds: Maybe): Quantity {
  return duration(known(seconds) ? Math.max(1, Math.round(seconds)) : null);
}

/** A share between 0 and 1 as percent. */
export function percent(share: Maybe): Quantity {
  if (!known(share)) return unknownQuantity;
  const value = share * 100;
  if (value === 0) return { value: "0", unit: "%" };
  return { value: value > 0 && value < 0.1 ? "< 0.1" : value.toFixed(value < 9.95 ? 1 : 0), unit: "%" };
}

export function asText({ value, unit }: Quantity): string {
  return unit ? `${value}\u00a0${unit}` : value;
}

export function parseTime(value: string | null | undefined): number | null {
  if (!value) return null;
  const time = Date.parse(value);
  return Number.isNaN(time) ? null : time;
}

/** Microseconds since 1970: a Date has milliseconds only. */
export function parseMicros(value: string | null | undefined): number | null {
  const time = parseTime(value);
  if (!value || time === null) return null;
  const digits = /\.(\d+)/.exec(value)?.[1] ?? "";
  return Math.floor(time / 1000) * 1e6 + Number(digits.padEnd(6, "0").slice(0, 6));
}

/** Local date and time to the second. */
export function formatTime(value: string | null | undefined): string {
  const time = parseTime(value);
  if (time === null) return UNKNOWN;
  return new Date(time).toLocaleString("sv-SE", { dateStyle: "short", timeStyle: "medium" });
}

/** How long ago, in words. */
export function formatAgo(value: string | null | undefined, now = Date.now()): string {
  const time = parseTime(value);
  if (time === null) return UNKNOWN;
  const seconds = (now - time) / 1000;
  if (seconds < 5) return "just now";
  const { value: number, unit } = duration(Math.floor(seconds));
  const [first] = number.split(" ");
  const [, firstUnit] = number.split(" ");
  return `${first} ${firstUnit ?? unit} ago`;
}
