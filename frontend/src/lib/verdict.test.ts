import { expect, test } from "vitest";
import { verdictOf } from "./verdict";

const well = { health: { level: "ok" as const, reason: "Replicating." }, destinations: [] };
const path = {
  path_name: "orders → warehouse",
  verdict: "NO BOTTLENECK",
  bottleneck_identified: false,
  explanation: "No bottleneck.",
  top_finding: null,
  top_finding_code: null,
};
const slow = {
  ...path,
  path_name: "orders → reports",
  bottleneck_identified: true,
  explanation: "Apply is.",
};

test("what is not well comes before what is slow", () => {
  const stopped = { ...well, health: { level: "stopped" as const, reason: "Stopped. 3 MiB wait." } };
  expect(verdictOf(stopped, [{ ...path, top_finding: "An index is missing" }])).toBe("Stopped. 3 MiB wait.");
});

test("the findings' verdict is the stream's, and names its path where there are several", () => {
  expect(verdictOf(well, undefined)).toBe("Replicating.");
  expect(verdictOf(well, [path])).toBe("No bottleneck.");
  expect(verdictOf(well, [{ ...path, top_finding: "An index is missing" }])).toBe("An index is missing.");
  expect(verdictOf(well, [path, slow])).toBe("orders → reports: Apply is.");
  expect(verdictOf(well, [slow, { ...path, top_finding: "An index is missing" }])).toBe(
    "orders → warehouse: An index is missing.",
  );
});

test("what concerns the source names no destination", () => {
  const idle = { ...path, top_finding: "The source is idle", top_finding_code: "source_idle" };
  expect(verdictOf(well, [idle, { ...idle, path_name: "orders → reports" }])).toBe("The source is idle.");
});

test("paused destinations are named beside the findings", () => {
  const paused = (name: string) => ({ state: "PAUSED" as const, database: { name } });
  const running = { state: "REPLICATING" as const, database: { name: "reports" } };
  const rests = { ...path, verdict: "PAUSED", explanation: "It is paused." };
  expect(verdictOf({ ...well, destinations: [running, paused("multi")] }, [rests, path])).toBe(
    "No bottleneck. multi is paused.",
  );
  expect(verdictOf({ ...well, destinations: [paused("a"), paused("b"), paused("c")] }, [path])).toBe(
    "No bottleneck. a, b and c are paused.",
  );
});
