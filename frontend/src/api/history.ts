import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { requestsOf } from "@/lib/statistics";
import { client, unwrap } from "./client";
import { keys } from "./keys";
import type { StreamEvent, StreamHistory } from "./types";

/** A range of history: the last so many seconds, or from one time to another (milliseconds since the epoch). */
export type HistoryRange = { seconds: number } | { from: number; until: number };

export function boundsOf(range: HistoryRange, now = Date.now()): { from: number; until: number } {
  return "seconds" in range ? { from: now - range.seconds * 1000, until: now } : range;
}

/** How often a chart of so many seconds is read again: about once for each of its points. */
export function refreshAfterMs(range: HistoryRange): number | false {
  if (!("seconds" in range)) return false;
  return Math.min(60_000, Math.max(1000, (range.seconds / 300) * 1000));
}

export const historyQuery = (streamId: string, statistics: string[], range: HistoryRange, points = 600) =>
  queryOptions({
    queryKey: keys.history(streamId, { statistics, range, points }),
    queryFn: async ({ signal }) => {
      const { from, until } = boundsOf(range);
      const [since, end] = [new Date(from).toISOString(), new Date(until).toISOString()];
      const answers = await Promise.all(
        requestsOf(statistics).map((statistic) =>
          unwrap(
            client.GET("/api/v1/streams/{stream_id}/history", {
              params: { path: { stream_id: streamId }, query: { statistic, since, until: end, points } },
              signal,
            }),
          ),
        ),
      );
      // The same range has the same points, whatever is asked for.
      return { ...(answers[0] as StreamHistory), series: answers.flatMap(({ series }) => series) };
    },
    refetchInterval: refreshAfterMs(range),
    placeholderData: keepPreviousData,
    retry: false,
  });

/** More marks than these tell nothing, and each request of a page takes its time. */
export const EVENTS_MAX = 1000;
const EVENTS_PAGE = 500;
const EVENTS_REFRESH_MS = 15_000;

/** The newest events of a range. `left` says that it has older ones. */
export const streamEventsQuery = (streamId: string, range: HistoryRange) =>
  queryOptions({
    queryKey: keys.streamEvents(streamId, range),
    queryFn: async ({ signal }) => {
      const { from, until } = boundsOf(range);
      const [since, end] = [new Date(from).toISOString(), new Date(until).toISOString()];
      const items: StreamEvent[] = [];
      let cursor: string | undefined;
      do {
        const page = await unwrap(
          client.GET("/api/v1/streams/{stream_id}/history/events", {
            params: {
              path: { stream_id: streamId },
              query: { since, until: end, limit: EVENTS_PAGE, cursor },
            },
            signal,
          }),
        );
        items.push(...page.items);
        cursor = page.next_cursor ?? undefined;
      } while (cursor && items.length < EVENTS_MAX);
      return { items, left: cursor !== undefined };
    },
    refetchInterval: "seconds" in range ? EVENTS_REFRESH_MS : false,
    placeholderData: keepPreviousData,
  });

/**
 * Statistics that can be charted: names follow the stream's components, so they are read again when those may have
 * changed.
 */
export const historyStatisticsQuery = (streamId: string) =>
  queryOptions({
    queryKey: keys.historyStatistics(streamId),
    queryFn: async ({ signal }) =>
      (
        await unwrap(
          client.GET("/api/v1/streams/{stream_id}/history/statistics", {
            params: { path: { stream_id: streamId } },
            signal,
          }),
        )
      ).statistics,
    refetchInterval: 30_000,
  });
