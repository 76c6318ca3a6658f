export interface ScheduleValues {
  name: string;
  stream_id: string | null;
  interval_seconds: number | string;
  window_seconds: number | string;
}

/** The interval that Streams' own monitoring practice uses. */
export const suggested: ScheduleValues = {
  name: "Every five minutes",
  stream_id: null,
  interval_seconds: 300,
  window_seconds: 60,
};

export type ScheduleFaults = Partial<Record<keyof ScheduleValues, string>>;

export function faultsOf(values: ScheduleValues): ScheduleFaults {
  const faults: ScheduleFaults = {};
  if (values.name.trim() === "") faults.name = "Enter a name.";
  const within = (value: number | string, low: number, high: number) =>
    value !== "" && Number.isInteger(Number(value)) && Number(value) >= low && Number(value) <= high;
  if (!within(values.interval_seconds, 10, 86_400))
    faults.interval_seconds = "Enter a whole number of seconds from 10 to 86 400.";
  if (!within(values.window_seconds, 2, 3600))
    faults.window_seconds = "Enter a whole number of seconds from 2 to 3600.";
  return faults;
}
