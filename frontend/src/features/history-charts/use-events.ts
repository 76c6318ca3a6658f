import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { curesQuery } from "@/api/advisor-cures";
import { alertHistoryQuery, openAlertsQuery } from "@/api/alerts";
import { changesQuery, enginesQuery } from "@/api/operations";
import { sessionQuery } from "@/api/session";
import type { Stream } from "@/api/types";
import { covers } from "@/lib/session-role";
import { eventsOf, type HistoryEvent } from "./events";

/** Events of the stream that the reader may see; those that cannot be read are left out. */
export function useEvents(stream: Pick<Stream, "id" | "capture_engine" | "destinations">): HistoryEvent[] {
  const isAdmin = covers(useQuery(sessionQuery).data?.user.role, "admin");
  const audit = useQuery({ ...changesQuery(stream.id), enabled: isAdmin }).data;
  const engines = useQuery(enginesQuery).data;
  const open = useQuery(openAlertsQuery).data;
  const resolved = useInfiniteQuery(alertHistoryQuery).data;
  const cures = useQuery(curesQuery(stream.id)).data;
  const engineIds = [stream.capture_engine.id, ...stream.destinations.map(({ engine }) => engine.id)].join(
    " ",
  );
  return useMemo(
    () =>
      eventsOf({
        streamId: stream.id,
        engines: engines ?? [],
        engineIds: engineIds.split(" "),
        audit: audit ?? [],
        alerts: [...(open ?? []), ...(resolved?.pages.flatMap(({ items }) => items) ?? [])],
        cures: cures ?? [],
      }),
    [stream.id, engineIds, engines, audit, open, resolved, cures],
  );
}
