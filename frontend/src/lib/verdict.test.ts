import { expect, test } from "vitest";
import { verdictOf } from "./verdict";

const well = { health: { level: "ok" as const, reason: "Replicating." } };
const path = {
  path_name: "orders → warehouse",
  bottleneck_identified: false,
  explanation: "No bottleneck.",
  top_finding: null,
};
const slow = {
  ...path,
  path_name: "orders → reports",
  bottleneck_identified: true,
  explanation: "Apply is.",
};

test("what is not well comes before what is slow", () => {
  const stopped = { health: { level: "stopped" as const, reason: "Stopped. 3 MiB wait." } };
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
