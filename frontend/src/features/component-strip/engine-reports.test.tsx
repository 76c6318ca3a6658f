import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import type { StreamError, StreamReport } from "@/api/types";
import { renderUi } from "@/test/render";
import { EngineReports } from "./engine-reports";

const error = {
  code: "database_unreachable",
  class: "transient",
  side: "destination",
  title: "The database cannot be reached",
  message: "Connection refused.",
  cure: "Check that the server runs.",
} as StreamError;
const report = {
  engine: { id: "engine02", name: "engine-2", state: "ONLINE" },
  destination_id: "warehouse",
  state: "RETRYING",
  observed_at: null,
  error,
} as StreamReport;

it("tells an error of an engine only where the page does not", () => {
  const { unmount } = renderUi(<EngineReports reports={[report]} shown={[null]} />);
  expect(screen.getByText(/Check that the server runs\./)).toBeVisible();
  unmount();
  renderUi(<EngineReports reports={[report]} shown={[{ ...error, message: "Refused again." }]} />);
  expect(screen.getByText("engine-2")).toBeVisible();
  expect(screen.queryByText(/Check that the server runs\./)).toBeNull();
});
