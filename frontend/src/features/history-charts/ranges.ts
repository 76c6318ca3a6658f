// Ranges of the charts, and dates as their form fields write them.

export const ranges = [
  { seconds: 60, label: "1 min" },
  { seconds: 300, label: "5 min" },
  { seconds: 900, label: "15 min" },
  { seconds: 3600, label: "1 h" },
  { seconds: 21_600, label: "6 h" },
  { seconds: 86_400, label: "1 d" },
  { seconds: 604_800, label: "7 d" },
  { seconds: 2_592_000, label: "30 d" },
  { seconds: 7_776_000, label: "90 d" },
] as const;

export const RANGE_DEFAULT = 900;

/** Milliseconds since the epoch as a local date and time to the second, as <input type="datetime-local"> has it. */
export function toField(milliseconds: number): string {
  return new Date(milliseconds).toLocaleString("sv-SE").replace(" ", "T");
}

/** Null while the field is empty or half filled. */
export function fromField(text: string): number | null {
  const time = Date.parse(text);
  return Number.isNaN(time) ? null : time;
}

/** Why a range cannot be analysed, or null. */
export function faultOf(from: number | null, until: number | null, now = Date.now()): string | null {
  if (from === null || until === null) return "Enter both times.";
  if (until - from < 1000) return "The range must end at least a second after it begins.";
  if (from > now) return "The range begins in the future.";
  return null;
}
