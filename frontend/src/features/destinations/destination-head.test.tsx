import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import { destination, stream } from "@/test/data";
import { expectNoAxeViolations, renderUi, stubApi } from "@/test/render";
import { DestinationHead } from "./destination-head";

const away = destination({
  phase: "RETRYING",
  error: {
    code: "database_unreachable",
    side: "destination",
    class: "transient",
    detail: null,
    title: "A database cannot be reached",
    message: "Connection refused. Its backlog of 12.0 MiB is on the engine's disk.",
    cure: "Check that the database runs.",
    sqlstate: null,
    table: null,
    lsn: null,
    xid: null,
    at: null,
  },
  spilled: {
    state: "ON DISK",
    bytes: 12 * 2 ** 20,
    lcrs: 90_000,
    frames: 98_000,
    age_seconds: 600,
    limit_bytes: 48 * 2 ** 20,
  },
  actions: ["stop", "retry", "drop"],
});
const show = (mayAct = true) =>
  renderUi(
    <DestinationHead
      stream={stream({ mode: "fan-out", destinations: [away] })}
      destination={away}
      mayAct={mayAct}
      onErrorQueue={vi.fn()}
      onParameters={vi.fn()}
    />,
  );

describe("DestinationHead", () => {
  it("says why a destination is behind, and how much of its disk space is used", async () => {
    show();
    expect(screen.getByRole("alert")).toHaveTextContent("Check that the database runs.");
    const meter = screen.getByRole("meter", { name: "Backlog of warehouse on disk" });
    expect(meter).toHaveAttribute("aria-valuenow", "25");
    expect(meter.getAttribute("aria-valuetext")).toMatch(/12.MiB of 48.MiB/);
    await expectNoAxeViolations();
  });

  it("drops it only by name, and tries again at once", async () => {
    const requests = stubApi({
      "POST /api/v1/streams/stream01/destinations/warehouse:retry": { status: 202, body: {} },
      "DELETE /api/v1/streams/stream01/destinations/warehouse": { status: 202, body: {} },
    });
    show();
    await userEvent.click(screen.getByRole("button", { name: "Retry warehouse" }));
    await userEvent.click(screen.getByRole("button", { name: "Drop warehouse" }));
    const dialog = await screen.findByRole("dialog", { name: "Drop destination" });
    expect(dialog).toHaveTextContent("is discarded for good");
    const confirm = within(dialog).getByRole("button", { name: "Drop" });
    expect(confirm).toBeDisabled();
    await userEvent.type(within(dialog).getByLabelText("Type warehouse to confirm"), "warehouse");
    await userEvent.click(confirm);
    await waitFor(() => expect(requests.map(({ method }) => method)).toEqual(["POST", "DELETE"]));
  });

  it("offers nothing to those who only read", () => {
    show(false);
    expect(screen.getByRole("button", { name: "Drop warehouse" })).toBeDisabled();
    expect(screen.getByRole("button", { name: "Retry warehouse" })).toBeDisabled();
  });
});
