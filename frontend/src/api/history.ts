import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { client, unwrap } from "./client";
import { keys } from "./keys";

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
    queryFn: ({ signal }) => {
      const { from, until } = boundsOf(range);
      return unwrap(
        client.GET("/api/v1/streams/{stream_id}/history", {
          params: {
            path: { stream_id: streamId },
            query: {
              statistic: statistics,
              since: new Date(from).toISOString(),
              until: new Date(until).toISOString(),
              points,
            },
          },
          signal,
        }),
      );
    },
    refetchInterval: refreshAfterMs(range),
    placeholderData: keepPreviousData,
    retry: false,
  });

/** What can be charted: names follow the stream's components, so they are read again when those may have changed. */
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
