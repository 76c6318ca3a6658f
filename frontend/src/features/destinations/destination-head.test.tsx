import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import { destination, lag, stream } from "@/test/data";
import { expectNoAxeViolations, renderUi, stubApi } from "@/test/render";
import { DestinationHead } from "./destination-head";
import { ERRORS_ID } from "./error-place";

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
  backlog: {
    state: "ON DISK",
    bytes: 12 * 2 ** 20,
    lcrs: 90_000,
    frames: 98_000,
    age_seconds: 600,
    limit_bytes: 48 * 2 ** 20,
  },
  actions: ["stop", "retry", "drop"],
});
const show = (mayAct = true, shown = away, of = stream({ mode: "fan-out" })) =>
  renderUi(
    <DestinationHead
      stream={{ ...of, destinations: [shown, ...of.destinations.slice(1)] }}
      destination={shown}
      mayAct={mayAct}
      onErrorQueue={vi.fn()}
      onParameters={vi.fn()}
    />,
  );

describe("DestinationHead", () => {
  it("says that a destination is behind, and how much of its disk space is used", async () => {
    show();
    expect(screen.getByText(/^A database cannot be reached\./)).toBeVisible();
    const meter = screen.getByRole("meter", { name: "Backlog of warehouse on disk" });
    expect(meter).toHaveAttribute("aria-valuenow", "25");
    expect(meter.getAttribute("aria-valuetext")).toMatch(/12.MiB of 48.MiB/);
    expect(screen.getByText("On disk for").parentElement).toHaveTextContent(/10.min/);
    expect(screen.getAllByText("Oldest")).toHaveLength(1);
    await expectNoAxeViolations();
  });

  it("refers to the top of the page, which has the error", () => {
    show();
    expect(screen.queryByRole("alert")).toBeNull();
    expect(screen.getByRole("link", { name: "the fix" })).toHaveAttribute("href", `#${ERRORS_ID}`);
    expect(screen.queryByText(/Check that the database runs/)).toBeNull();
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

  it("pauses, is paused, and resumes; with its stream it is stopped", () => {
    const paused = { ...away, status: "DISABLED" as const, state: "PAUSED" as const, error: null };
    const { unmount } = show(true, { ...paused, desired_status: "DISABLED", actions: ["start", "drop"] });
    expect(screen.getByText("Paused")).toBeVisible();
    expect(screen.getByRole("button", { name: "Resume warehouse" })).toBeEnabled();
    unmount();
    show(true, { ...paused, state: "STOPPED" }, stream({ desired_status: "DISABLED", status: "DISABLED" }));
    expect(screen.getByText("Stopped")).toBeVisible();
    expect(screen.getByRole("button", { name: "Pause warehouse" })).toBeDisabled();
  });

  it("tells of other destinations only where there are any", async () => {
    const { unmount } = show();
    await userEvent.click(screen.getByRole("button", { name: "Pause warehouse" }));
    expect(await screen.findByRole("dialog", { name: "Pause warehouse" })).not.toHaveTextContent(
      "other destinations",
    );
    unmount();
    show(true, away, stream({ destinations: [away, { ...away, id: "b" }] }));
    await userEvent.click(screen.getByRole("button", { name: "Pause warehouse" }));
    expect(await screen.findByRole("dialog", { name: "Pause warehouse" })).toHaveTextContent(
      "The other destinations are not affected.",
    );
  });

  it("says when its backlog is full only while it fills", () => {
    const until = lag({ bytes: 12 * 2 ** 20, seconds_to_full: 600 });
    const { unmount } = show(true, { ...away, lag: until });
    expect(screen.getByText("Full in")).toBeVisible();
    unmount();
    const backlog = away.backlog as NonNullable<typeof away.backlog>;
    show(true, { ...away, lag: until, backlog: { ...backlog, state: "FULL", bytes: backlog.limit_bytes } });
    expect(screen.queryByText("Full in")).toBeNull();
  });

  it("says when the staged WAL is full though its own backlog is empty", () => {
    const until = lag({ bytes: 12 * 2 ** 20, seconds_to_full: 600, reached_limit: "staging_limit_mb" });
    const backlog = away.backlog as NonNullable<typeof away.backlog>;
    show(true, { ...away, lag: until, backlog: { ...backlog, state: "IN MEMORY", bytes: 0 } });
    expect(screen.getByText("Full in")).toBeVisible();
  });

  it("tells since when the oldest transaction of its error queue is parked", () => {
    const parked_at = new Date(Date.now() - 2 * 86_400_000).toISOString();
    show(true, { ...away, error_queue_transactions: 12, error_queue_oldest_at: parked_at });
    expect(screen.getByText("oldest 2 d ago")).toBeVisible();
  });

  it("discards no backlog where there is none", async () => {
    show(true, { ...away, backlog: null });
    await userEvent.click(screen.getByRole("button", { name: "Drop warehouse" }));
    const dialog = await screen.findByRole("dialog", { name: "Drop destination" });
    expect(dialog).toHaveTextContent("None of its changes are on the engine's disk.");
    expect(dialog).not.toHaveTextContent(/backlog|discarded/);
  });

  it("offers nothing to those who only read", () => {
    show(false);
    expect(screen.getByRole("button", { name: "Drop warehouse" })).toBeDisabled();
    expect(screen.getByRole("button", { name: "Retry warehouse" })).toBeDisabled();
  });
});
