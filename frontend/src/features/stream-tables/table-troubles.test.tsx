import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { StreamTable } from "@/api/types";
import { destination, stream } from "@/test/data";
import { expectNoAxeViolations, renderUi } from "@/test/render";
import { TableTroubles } from "./table-troubles";

const table: StreamTable = {
  schema: "public",
  table: "orders",
  destination_name: { schema: "public", table: "orders" },
  inserts_only: false,
  filtered: false,
  state: "STOPPED",
  inserts: 0,
  updates: 0,
  deletes: 0,
  truncates: 0,
  changes_per_second: null,
  last_change: null,
  trouble: {
    kind: "REPLACED",
    reason: "It was dropped, and another table was created under its name.",
    cure: "Copy the table again.",
    sql: null,
    since: "2026-11-21T00:00:00Z",
    renamed_to: null,
    resolutions: ["copy"],
  },
};

describe("TableTroubles", () => {
  it("names the trouble and asks before the destination's rows go", async () => {
    renderUi(<TableTroubles stream={stream({ destinations: [destination({ tables: [table] })] })} mayAct />);
    expect(screen.getByText(/another table was created under its name/)).toBeVisible();
    expect(screen.getByText(/its changes are left out/)).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Copy again" }));
    const dialog = await screen.findByRole("dialog", { name: "Copy again: public.orders" });
    expect(dialog).toHaveTextContent("Deletes all its rows in warehouse");
    expect(dialog).toHaveTextContent("error queue that changed only copied tables are discarded");
    await expectNoAxeViolations();
  });

  it("shows the SQL for the source where no button cures it", async () => {
    const sql = 'ALTER TABLE "public"."orders" REPLICA IDENTITY FULL;';
    const cure = `At the source, run ${sql} Old rows then go into the WAL whole.`;
    const reason = "It has no replica identity: it has no primary key.";
    const lost: StreamTable = {
      ...table,
      state: "REPLICATING",
      trouble: {
        kind: "UNIDENTIFIED",
        reason,
        cure,
        sql,
        since: "2026-11-21T00:00:00Z",
        renamed_to: null,
        resolutions: [],
      },
    };
    renderUi(<TableTroubles stream={stream({ destinations: [destination({ tables: [lost] })] })} mayAct />);
    expect(screen.getByText(/public\.orders in warehouse: Unidentified/)).toBeVisible();
    expect(screen.getByText(cure)).toBeVisible();
    expect(screen.getByRole("region", { name: /^Cure as SQL/ })).toHaveTextContent(sql);
    expect(screen.getByRole("button", { name: "Copy SQL" })).toBeVisible();
    expect(screen.queryByRole("button", { name: "Copy again" })).toBeNull();
    await expectNoAxeViolations();
  });

  it("tells a cause that two destinations have once, and other causes apart", async () => {
    const at = (id: string, ...tables: StreamTable[]) =>
      destination({ id, database: { id, name: id, address: "" }, tables });
    const trouble = { ...(table.trouble as NonNullable<StreamTable["trouble"]>) };
    const later = { ...table, trouble: { ...trouble, since: "2026-11-22T00:00:00Z" } };
    const renamed = {
      ...table,
      trouble: { ...trouble, kind: "RENAMED" as const, resolutions: ["follow" as const] },
    };
    renderUi(
      <TableTroubles
        stream={stream({ destinations: [at("north", later), at("south", table), at("west", renamed)] })}
        mayAct
      />,
    );
    const [first, second, ...others] = screen.getAllByRole("alert");
    expect(first).toHaveTextContent("public.orders in north and south: Replaced");
    expect(first).toHaveTextContent(/Since 2026-11-2[01]/);
    expect(second).toHaveTextContent("public.orders in west: Renamed");
    expect(others).toEqual([]);
    await userEvent.click(screen.getByRole("button", { name: "Copy again in south" }));
    const dialog = await screen.findByRole("dialog", { name: "Copy again: public.orders" });
    expect(dialog).toHaveTextContent("Deletes all its rows in south");
  });

  it("offers once what is of the whole stream", () => {
    const trouble = { ...(table.trouble as NonNullable<StreamTable["trouble"]>), kind: "RENAMED" as const };
    const renamed = { ...table, trouble: { ...trouble, resolutions: ["follow" as const] } };
    const both = ["north", "south"].map((id) => destination({ id, tables: [renamed] }));
    renderUi(<TableTroubles stream={stream({ destinations: both })} mayAct />);
    expect(screen.getAllByRole("button", { name: "Follow the rename" })).toHaveLength(1);
  });

  it("shows the call and asks for no reason where the API takes none", async () => {
    const trouble = { ...(table.trouble as NonNullable<StreamTable["trouble"]>), kind: "RENAMED" as const };
    const renamed = { ...table, trouble: { ...trouble, resolutions: ["follow" as const] } };
    renderUi(
      <TableTroubles stream={stream({ destinations: [destination({ tables: [renamed] })] })} mayAct />,
    );
    await userEvent.click(screen.getByRole("button", { name: "Follow the rename" }));
    const dialog = await screen.findByRole("dialog", { name: "Follow the rename: public.orders" });
    expect(dialog).toHaveTextContent("/api/v1/streams/stream01/tables:follow");
    expect(within(dialog).queryByRole("textbox")).toBeNull();
  });

  it("counts those that it does not show", () => {
    const tables = ["a", "b", "c"].map((name) => ({ ...table, table: name }));
    renderUi(<TableTroubles stream={stream({ destinations: [destination({ tables })] })} mayAct most={2} />);
    expect(screen.getAllByRole("button", { name: "Copy again" })).toHaveLength(2);
    expect(screen.getByText("And 1 more: see the Tables tab.")).toBeVisible();
  });

  it("shows nothing for tables that are well, and only reads for viewers", () => {
    const well = stream({ destinations: [destination({ tables: [{ ...table, trouble: null }] })] });
    const { unmount } = renderUi(<TableTroubles stream={well} mayAct />);
    expect(screen.queryByRole("button")).toBeNull();
    unmount();
    const ill = stream({ destinations: [destination({ tables: [table] })] });
    renderUi(<TableTroubles stream={ill} mayAct={false} />);
    expect(screen.getByRole("button", { name: "Copy again" })).toBeDisabled();
  });
});
