import { describe, expect, it } from "vitest";
import type { AppliedCure, Outage, StreamEvent } from "@/api/types";
import { finding } from "@/test/advisor";
import { eventsBetween, eventsOf, outageEvents } from "./events";

const at = (minute: number) => `2026-11-21T00:${String(minute).padStart(2, "0")}:00Z`;

const event = (minute: number, changes: Partial<StreamEvent>): StreamEvent => ({
  id: `action-${minute}`,
  at: at(minute),
  until: null,
  kind: "restart",
  sentence: "Stopped",
  actor_name: "ann",
  severity: null,
  ...changes,
});

describe("the events of a stream", () => {
  it("are restarts, changes, alerts and cures, the oldest first", () => {
    const cure = { id: 3, created_at: at(5), finding, state: "helped" } as unknown as AppliedCure;
    const events = eventsOf(
      [
        event(6, { kind: "alert", sentence: "Latency", actor_name: null, severity: "critical" }),
        event(3, { kind: "change", sentence: "Parked transaction 4 executed again" }),
        event(2, {}),
        event(1, { sentence: "Engine engine-1 started", actor_name: null }),
        event(0, { sentence: "Engine engine-1 started", actor_name: null }),
      ],
      [cure],
    );
    expect(events.map(({ kind, text, tone }) => [kind, text, tone])).toEqual([
      ["Restart", "Engine engine-1 started", "quiet"],
      ["Restart", "Engine engine-1 started", "quiet"],
      ["Restart", "Stopped by ann", "busy"],
      ["Change", "Parked transaction 4 executed again by ann", "busy"],
      ["Cure", `${finding.title}: it helped`, "good"],
      ["Alert", "Latency", "bad"],
    ]);
  });

  it("are also outages, with their spans, as far as they reach into the range", () => {
    const outage = (of: Outage["of"], state: string, since: string, until: string | null) =>
      ({
        of,
        id: of,
        name: "warehouse",
        state,
        reason: "No answer.",
        became: null,
        became_at: null,
        since,
        until,
      }) as Outage;
    const events = outageEvents([
      outage("destination", "RETRYING", at(1), at(3)),
      outage("engine", "UNREACHABLE", at(2), null),
      outage("stream", "ABORTED", at(9), at(10)),
    ]);
    const shown = eventsBetween(events, Date.parse(at(2)), Date.parse(at(5)));
    expect(shown.map(({ kind, tone, until }) => [kind, tone, until])).toEqual([
      ["Outage", "bad", Date.parse(at(3))],
      ["Outage", "warning", Number.POSITIVE_INFINITY],
    ]);
    expect(shown[0]?.text).toMatch(
      /^Destination warehouse did not work for 2(\.0)?.min, until .*:03:00\. No answer\.$/,
    );
    expect(shown[1]?.text).toBe("Engine warehouse has been unreachable since then. No answer.");
  });

  it("tell the first cause of an outage, and what it has become", () => {
    const [event] = outageEvents([
      {
        of: "stream",
        id: "stream01",
        name: "orders",
        state: "ABORTED",
        reason: "The connection broke.",
        became: "The backlog is full.",
        became_at: at(4),
        since: at(1),
        until: null,
      },
    ]);
    expect(event?.text).toMatch(
      /^The stream has been stopped by an error since then\. The connection broke\. From .*:04:00 on: The backlog is full\.$/,
    );
  });
});
