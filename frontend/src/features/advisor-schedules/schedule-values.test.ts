import { expect, it } from "vitest";
import { faultsOf, suggested } from "./schedule-values";

it("finds nothing wrong with what is suggested, and names each bad field", () => {
  expect(faultsOf(suggested)).toEqual({});
  expect(
    Object.keys(faultsOf({ name: " ", stream_id: null, interval_seconds: 9, window_seconds: "" })),
  ).toEqual(["name", "interval_seconds", "window_seconds"]);
});
