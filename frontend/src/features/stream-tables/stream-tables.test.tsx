import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import type { SourceTable, StreamDestination, StreamTable } from "@/api/types";

import { destination, stream } from "@/test/data";
import { expectNoAxeViolations, renderUi, stubApi } from "@/test/render";
import { StreamTables } from "./stream-tables";

const orders: StreamTable = {
  schema: "public",
  table: "orders",
  destination_name: { schema: "public", table: "orders" },
  inserts_only: false,
  filtered: false,
  state: "REPLICATING",
  trouble: null,
  inserts: 12,
  updates: 0,
  deletes: 0,
  truncates: 0,
  changes_per_second: 41.5,
  last_change: { at_source: "2026-11-21T10:00:00.999460Z", at_destination: "2026-11-21T10:00:01.002Z" },
};

const atSource = {
  schema: "public",
  table: "orders",
  kind: "table",
  bytes: 8192,
  rows_estimated: 10,
  key_columns: ["id", "line"],
  replica_identity: "default",
  replicable: true,
  unsupported: [],
  warnings: [],
} satisfies Partial<SourceTable>;

const counts = { inserts: 1, updates: 1, deletes: 1, truncates: 0, trouble: null };
const quiet: StreamTable = {
  ...orders,
  ...counts,
  table: "quiet",
  destination_name: { schema: "public", table: "quiet" },
  changes_per_second: 0,
  last_change: null,
};
const log: StreamTable = {
  ...quiet,
  table: "log",
  destination_name: { schema: "public", table: "log" },
  inserts_only: true,
};

const waits = { p50_ms: null, p99_ms: 180_000, transactions: null, last: null, at_least: true };

const cellOf = (table: string, header: string) => {
  const place = screen.getAllByRole("columnheader").findIndex((head) => head.textContent?.trim() === header);
  const row = screen.getByText(table).closest("tr") as HTMLElement;
  return within(row).getAllByRole("cell")[place] as HTMLElement;
};

function renderTables(mayAct: boolean, first: Partial<StreamDestination> = {}) {
  const onDestination = vi.fn();
  const destinations = [
    destination({ id: "a", lcrs_per_second: 41.5, tables: [orders, quiet, log], ...first }),
    destination({
      id: "b",
      database: { id: "b", name: "archive", address: "127.0.0.1:5433/b" },
      tables: [quiet],
    }),
  ];
  renderUi(
    <StreamTables
      stream={stream({ destinations })}
      destinationId={undefined}
      onDestination={onDestination}
      filter=""
      onFilter={() => {}}
      mayAct={mayAct}
    />,
  );
  return onDestination;
}

describe("StreamTables", () => {
  it("shows how fast, how late and by what each table's rows come, of one destination", async () => {
    stubApi({ "POST /api/v1/streams:preview-tables": { body: { tables: [atSource] } } });
    const onDestination = renderTables(true);
    const row = (await screen.findByText("public.orders")).closest("tr") as HTMLElement;
    expect(await within(row).findByText("id, line")).toBeVisible();
    expect(row).toHaveTextContent("41.5 LCR/s");
    expect(row).toHaveTextContent("2.54 ms");
    const silent = screen.getByText("public.quiet").closest("tr") as HTMLElement;
    expect(silent).toHaveTextContent("none yet");
    expect(silent).toHaveTextContent("unknown");
    const log = screen.getByText("public.log").closest("tr") as HTMLElement;
    expect(within(log).getByText("inserts only")).toBeVisible();
    await userEvent.click(screen.getByRole("combobox", { name: "Destination" }));
    await userEvent.click(await screen.findByRole("option", { name: "archive" }));
    expect(onDestination).toHaveBeenCalledWith("b");
    await expectNoAxeViolations();
  });

  it("does not look well while a destination's changes wait, whatever the last one took", async () => {
    stubApi({ "POST /api/v1/streams:preview-tables": { body: { tables: [atSource] } } });
    renderTables(true, { latency: waits });
    await screen.findByText("public.orders");
    expect(cellOf("public.orders", "Latency")).toHaveTextContent(/^≥ 3 min ?last 2\.54 ms$/);
  });

  it("says what the bound is of, and has none for a table without any change", async () => {
    stubApi({ "POST /api/v1/streams:preview-tables": { body: { tables: [atSource] } } });
    renderTables(true, { latency: waits });
    await screen.findByText("public.orders");
    const bound = within(cellOf("public.orders", "Latency")).getByTitle(/counts the WAL of all databases/);
    expect(bound).toHaveTextContent("≥ 3 min");
    expect(cellOf("public.quiet", "Latency")).toHaveTextContent(/^–$/);
  });

  const old: [string, Partial<StreamDestination>, RegExp][] = [
    ["that is paused", { status: "DISABLED", state: "PAUSED", lcrs_per_second: null }, /^–$/],
    ["whose engine does not answer", { status: "UNKNOWN", state: "UNKNOWN" }, /^–$/],
    ["without samples", { lcrs_per_second: null }, /^–$/],
    ["without samples that is behind", { lcrs_per_second: null, latency: waits }, /^≥ 3 min$/],
  ];
  it.each(old)("shows no old figures of a destination %s", async (_, figures, latency) => {
    stubApi({ "POST /api/v1/streams:preview-tables": { body: { tables: [atSource] } } });
    renderTables(true, figures);
    await screen.findByText("public.orders");
    expect(cellOf("public.orders", "Rate")).toHaveTextContent(/^–$/);
    expect(cellOf("public.quiet", "Rate")).toHaveTextContent(/^–$/);
    expect(cellOf("public.orders", "Latency")).toHaveTextContent(latency);
  });

  it("tells of a table that was only truncated, before what a narrow window cuts off", async () => {
    stubApi({ "POST /api/v1/streams:preview-tables": { body: { tables: [atSource] } } });
    const truncated = { ...orders, inserts: 0, truncates: 3, changes_per_second: 0.033 };
    renderTables(true, { tables: [truncated] });
    const row = (await screen.findByText("public.orders")).closest("tr") as HTMLElement;
    const headers = screen.getAllByRole("columnheader").map(({ textContent }) => textContent?.trim() ?? "");
    const place = (name: string) => headers.indexOf(name);
    expect(within(row).getAllByRole("cell")[place("Truncates")]).toHaveTextContent("3");
    expect(within(row).getAllByRole("cell")[place("Rate")]).toHaveTextContent("0.03 LCR/s");
    expect(within(row).getAllByRole("cell")[place("Last change")]).toHaveTextContent(/ago/);
    expect(headers.slice(place("Truncates"))).toEqual(["Truncates", "Identity", "Copy"]);
  });

  it("asks before it copies a table again, and copies it at that destination", async () => {
    let sent: unknown = null;
    stubApi({
      "POST /api/v1/streams:preview-tables": { body: { tables: [atSource] } },
      "POST /api/v1/streams/stream01/destinations/a/tables:copy": async (request) => {
        sent = await request.json();
        return { status: 202, body: {} };
      },
    });
    renderTables(true);
    await userEvent.click(await screen.findByRole("button", { name: "Copy public.orders again" }));
    const dialog = await screen.findByRole("dialog", { name: "Copy again: public.orders" });
    expect(dialog).toHaveTextContent(/Deletes all its rows in \w+/);
    expect(sent).toBeNull();
    await userEvent.click(within(dialog).getByRole("button", { name: "Copy again" }));
    await vi.waitFor(() => expect(sent).toEqual({ schema: "public", table: "orders" }));
  });

  it("shows the state of a destination that does not replicate beside what its tables were", () => {
    stubApi({ "POST /api/v1/streams:preview-tables": { body: { tables: [] } } });
    const copied = { ...orders, state: "COPIED" as const };
    renderTables(true, { status: "DISABLED", phase: "STOPPED", state: "PAUSED", tables: [copied] });
    expect(screen.getByText("Paused")).toBeVisible();
    expect(screen.getByText("Copied")).toBeVisible();
  });

  it("shows the trouble of a table in its row, in place of what it was before", () => {
    stubApi({ "POST /api/v1/streams:preview-tables": { body: { tables: [] } } });
    const ill = (state: StreamTable["state"], kind: "REPLACED" | "RENAMED"): StreamTable => ({
      ...orders,
      state,
      trouble: { kind, reason: "", cure: "", sql: null, since: "", renamed_to: null, resolutions: [] },
    });
    const named = { table: "sold", destination_name: { schema: "public", table: "sold" } };
    const tables = [ill("COPIED", "REPLACED"), { ...ill("STOPPED", "RENAMED"), ...named }];
    renderTables(true, { tables });
    const row = (name: string) => screen.getByText(name).closest("tr") as HTMLElement;
    expect(within(row("public.orders")).getByText("Replaced")).toHaveStyle({ color: "var(--tone-bad)" });
    expect(row("public.orders")).not.toHaveTextContent("Copied");
    expect(row("public.sold")).toHaveTextContent("RenamedStopped");
  });

  it("keeps the text of a table's badge on a narrow screen", () => {
    stubApi({ "POST /api/v1/streams:preview-tables": { body: { tables: [] } } });
    renderTables(true, { tables: [{ ...orders, filtered: true }] });
    expect(screen.getByTitle(/^Rules decide which rows/)).toHaveStyle({ flex: "none" });
  });

  it("shows the destination's name of a table that has another one there", () => {
    stubApi({ "POST /api/v1/streams:preview-tables": { body: { tables: [] } } });
    const named = { ...orders, destination_name: { schema: "archive", table: "sold" } };
    renderTables(true, { tables: [named, quiet] });
    expect(screen.getByText("public.orders → archive.sold")).toBeVisible();
    expect(screen.getByText("public.quiet")).toBeVisible();
  });

  it("lets viewers only read", async () => {
    stubApi({ "POST /api/v1/streams:preview-tables": { body: { tables: [] } } });
    renderTables(false);
    expect(await screen.findByRole("button", { name: "Copy public.orders again" })).toBeDisabled();
  });
});
