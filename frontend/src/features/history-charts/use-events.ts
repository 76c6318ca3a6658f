import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { curesQuery } from "@/api/advisor-cures";
import { EVENTS_MAX, type HistoryRange, streamEventsQuery } from "@/api/history";
import { asProblem } from "@/api/problem";
import { formatCount } from "@/lib/format";
import { eventsOf, type HistoryEvent } from "./events";

export interface Events {
  events: HistoryEvent[];
  /** Not all of them are known yet. */
  loading: boolean;
  /** Events of the range that `events` lacks, in words. */
  missing: string[];
}

/** The events of a stream in a range, for every role; what is not among them is said. */
export function useEvents(streamId: string, range: HistoryRange): Events {
  const streamEvents = useQuery(streamEventsQuery(streamId, range));
  const cures = useQuery(curesQuery(streamId));
  const events = useMemo(
    () => eventsOf(streamEvents.data?.items ?? [], cures.data ?? []),
    [streamEvents.data, cures.data],
  );
  const missing = [
    ...(streamEvents.data?.left
      ? [`Only the newest ${formatCount(EVENTS_MAX)} restarts, changes and alerts of the range are shown.`]
      : []),
    ...(streamEvents.error
      ? [`Restarts, changes and alerts are not up to date: ${asProblem(streamEvents.error).detail}`]
      : []),
    ...(cures.error ? [`Cures are not up to date: ${asProblem(cures.error).detail}`] : []),
  ];
  return { events, loading: streamEvents.isPending || cures.isPending, missing };
}
