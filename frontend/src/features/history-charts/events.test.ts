import { describe, expect, it } from "vitest";
import type { Alert, AppliedCure, AuditEntry } from "@/api/types";
import { finding } from "@/test/advisor";
import { engine } from "@/test/data";
import { eventsOf } from "./events";

const at = (minute: number) => `2026-11-21T00:${String(minute).padStart(2, "0")}:00Z`;

function entry(minute: number, action: string, values: Partial<AuditEntry> = {}) {
  const base = { id: String(minute), at: at(minute), action, actor_name: "ann", target_id: "stream01" };
  return { ...base, before: null, after: null, ...values } as AuditEntry;
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
      audit: [entry(3, "streams_update", { after: { rules: {} } }), entry(2, "streams_stop")],
      alerts: [alert],
      cures: [cure],
    });
    expect(events.map(({ what, text, tone }) => [what, text, tone])).toEqual([
      ["Restart", "Engine engine-1 started", "quiet"],
      ["Restart", "Stopped by ann", "busy"],
      ["Change", "Tables changed by ann", "busy"],
      ["Alert", "Latency", "bad"],
      ["Cure", `${finding.title}: it helped`, "good"],
    ]);
  });

  it("are not those of other streams and engines", () => {
    const other = entry(1, "streams_stop", { target_id: "other" });
    expect(eventsOf({ ...sources, engines: [{ ...engine, id: "away" }], audit: [other] })).toEqual([]);
  });
});
