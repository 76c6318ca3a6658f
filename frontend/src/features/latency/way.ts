// A marker's way: its hops, one lane for each destination.
import type { Marker, MarkerHop } from "@/api/types";

const stages: Record<string, string> = {
  CAPTURE: "Captured",
  ENQUEUE: "In the queue",
  SEND: "Sent",
  RECEIVE: "Received",
  DEQUEUE: "Read by apply",
  DISPATCH: "Taken by the coordinator",
  COMMIT: "Committed",
};

export function hopInWords(stage: string): string {
  return stages[stage] ?? stage;
}

export interface Lane {
  destination: string | null;
  hops: MarkerHop[];
}

/** Shared hops belong to every lane; a marker that has reached no destination has one. */
export function lanesOf(hops: MarkerHop[]): Lane[] {
  const shared = hops.filter(({ destination_id }) => destination_id === null);
  const own = [...new Set(hops.map(({ destination_id }) => destination_id))].filter((id) => id !== null);
  if (own.length === 0) return [{ destination: null, hops: shared }];
  return own.map((destination) => ({
    destination,
    hops: [...shared, ...hops.filter(({ destination_id }) => destination_id === destination)],
  }));
}

/** The hop that took longest, if it took most of the way. */
export function slowestOf(hops: MarkerHop[]): MarkerHop | null {
  const [slowest] = [...hops].sort((a, b) => b.step_ms - a.step_ms);
  const last = hops.at(-1);
  return slowest && last && slowest.step_ms > last.latency_ms / 2 ? slowest : null;
}

/** The newest heartbeat that arrived everywhere: what latency is while nobody writes. */
export function lastHeartbeat(markers: Marker[]): Marker | null {
  return markers.find(({ kind, latency_ms }) => kind === "HEARTBEAT" && latency_ms !== null) ?? null;
}
