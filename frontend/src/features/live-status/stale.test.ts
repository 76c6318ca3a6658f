import { describe, expect, it } from "vitest";
import { isStale, STALE_AFTER_MS } from "./stale";

const at = "2026-11-21T00:00:00Z";
const now = Date.parse(at) + STALE_AFTER_MS + 1;

describe("isStale", () => {
  it("is true when a running stream's numbers have stopped", () => {
    expect(isStale({ desired_status: "ENABLED", sampled_at: at }, now)).toBe(true);
    expect(isStale({ desired_status: "ENABLED", sampled_at: at }, now - 2)).toBe(false);
  });

  it("is false for a stopped stream and before the first sample", () => {
    expect(isStale({ desired_status: "DISABLED", sampled_at: at }, now)).toBe(false);
    expect(isStale({ desired_status: "ENABLED", sampled_at: null }, now)).toBe(false);
  });
});
