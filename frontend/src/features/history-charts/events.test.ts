import { describe, expect, it } from "vitest";
import type { Alert, AppliedCure, AuditEntry, Outage } from "@/api/types";
import { finding } from "@/test/advisor";
import { engine } from "@/test/data";
import { eventsBetween, eventsOf, outageEvents } from "./events";

const at = (minute: number) => `2026-11-21T00:${String(minute).padStart(2, "0")}:00Z`;

function entry(minute: number, action: string, sentence: string, target_id = "stream01") {
  return { id: String(minute), at: at(minute), action, sentence, actor_name: "ann", target_id } as AuditEntry;
}

const sources = {
  streamId: "stream01",
  engines: [],
  engineIds: ["engine01"],
  audit: [],
  alerts: [],
  cures: [],
};

describe("the events of a stream", () => {
  it("are restarts, changes, alerts and cures, the oldest first", () => {
    const alert = {
      id: "1",
      stream_id: "stream01",
      fired_at: at(4),
      resolved_at: null,
      title: "Latency",
      severity: "critical",
    } as Alert;
    const cure = { id: 3, created_at: at(5), finding, state: "helped" } as unknown as AppliedCure;
    const events = eventsOf({
      ...sources,
      engines: [{ ...engine, started_at: at(1) }],
      audit: [
        entry(6, "stream_errors_get", "Rows of parked transaction 4 looked at"),
        entry(3, "stream_errors_execute", "Parked transaction 4 executed again"),
        entry(2, "streams_stop", "Stopped"),
      ],
      alerts: [alert],
      cures: [cure],
    });
    expect(events.map(({ what, text, tone }) => [what, text, tone])).toEqual([
      ["Restart", "Engine engine-1 started", "quiet"],
      ["Restart", "Stopped by ann", "busy"],
      ["Change", "Parked transaction 4 executed again by ann", "busy"],
      ["Alert", "Latency", "bad"],
      ["Cure", `${finding.title}: it helped`, "good"],
    ]);
  });

  it("are not those of other streams and engines", () => {
    const other = entry(1, "streams_stop", "Stopped", "other");
    expect(eventsOf({ ...sources, engines: [{ ...engine, id: "away" }], audit: [other] })).toEqual([]);
  });

  it("are also outages, with their spans, as far as they reach into the range", () => {
    const outage = (of: Outage["of"], state: string, since: string, until: string | null) =>
      ({ of, id: of, name: "warehouse", state, reason: "No answer.", since, until }) as Outage;
    const events = outageEvents([
      outage("destination", "RETRYING", at(1), at(3)),
      outage("engine", "UNREACHABLE", at(2), null),
      outage("stream", "ABORTED", at(9), at(10)),
    ]);
    const shown = eventsBetween(events, Date.parse(at(2)), Date.parse(at(5)));
    expect(shown.map(({ what, tone, until }) => [what, tone, until])).toEqual([
      ["Outage", "bad", Date.parse(at(3))],
      ["Outage", "warning", Number.POSITIVE_INFINITY],
    ]);
    expect(shown[0]?.text).toMatch(
      /^Destination warehouse did not work for 2(\.0)?.min, until .*:03:00\. No answer\.$/,
    );
    expect(shown[1]?.text).toBe("Engine warehouse was unreachable since then. No answer.");
  });
});
