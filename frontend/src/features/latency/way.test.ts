import { describe, expect, it } from "vitest";
import type { Marker, MarkerHop } from "@/api/types";
import { lanesOf, lastHeartbeat, slowestOf } from "./way";

function hop(
  stage: string,
  step_ms: number,
  latency_ms: number,
  destination_id: string | null = null,
): MarkerHop {
  return {
    stage,
    component: "APPLY",
    engine_id: "engine01",
    destination_id,
    at: "2026-11-21T00:00:00Z",
    latency_ms,
    step_ms,
  };
}

describe("a marker's way", () => {
  it("is one lane for each destination, with what they share before it", () => {
    const hops = [hop("CAPTURE", 1, 1), hop("COMMIT", 4, 5, "east"), hop("COMMIT", 9, 10, "west")];
    expect(
      lanesOf(hops).map(({ destination, hops: own }) => [destination, own.map(({ step_ms }) => step_ms)]),
    ).toEqual([
      ["east", [1, 4]],
      ["west", [1, 9]],
    ]);
    expect(lanesOf([hop("CAPTURE", 1, 1)])).toHaveLength(1);
  });

  it("names the place where most of the time went by, if there is one", () => {
    expect(slowestOf([hop("CAPTURE", 1, 1), hop("COMMIT", 9, 10)])?.stage).toBe("COMMIT");
    expect(slowestOf([hop("CAPTURE", 5, 5), hop("COMMIT", 5, 10)])).toBeNull();
    expect(slowestOf([])).toBeNull();
  });

  it("begins with the newest heartbeat that has arrived", () => {
    const marker = (kind: Marker["kind"], latency_ms: number | null): Marker => ({
      id: null,
      kind,
      label: "",
      state: "ARRIVED",
      placed_at: "",
      commit_lsn: null,
      xid: null,
      committed_at: null,
      failure: null,
      latency_ms,
      hops: [],
    });
    expect(
      lastHeartbeat([marker("TRACKED", 1), marker("HEARTBEAT", null), marker("HEARTBEAT", 3)])?.latency_ms,
    ).toBe(3);
    expect(lastHeartbeat([marker("TRACKED", 1)])).toBeNull();
  });
});
