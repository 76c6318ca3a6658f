import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { StreamError } from "@/api/types";
import { destination, stream } from "@/test/data";
import { expectNoAxeViolations, renderUi, stubApi } from "@/test/render";
import { CopyAgain, tableToCopy } from "./copy-again";

const differs: StreamError = {
  code: "destination_table_differs",
  class: "operator_action",
  side: "destination",
  title: "The destination's table does not fit the source's",
  message: "A column is missing.",
  detail: null,
  cure: "Copy the table again.",
  sqlstate: null,
  table: '"shop"."the ""orders"""',
  lsn: null,
  xid: null,
  at: null,
};
const [known] = stream().tables;
const tables = known
  ? [
      { ...known, table: "orders", destination_name: { schema: "shop", table: 'the "orders"' } },
      { ...known, table: "items", destination_name: { schema: "shop", table: "items" } },
    ]
  : [];
const north = destination({ id: "north", database: { id: "n", name: "north", address: "" }, tables });
const south = destination({ id: "south", database: { id: "s", name: "south", address: "" }, tables });
const show = (error: StreamError, at = [{ id: "north", name: "north" }], mayAct = true) =>
  renderUi(
    <CopyAgain
      stream={stream({ destinations: [north, south] })}
      table={tableToCopy(error)}
      at={at}
      mayAct={mayAct}
    />,
  );

describe("CopyAgain", () => {
  it("asks, and copies the table that the error names as the destination does", async () => {
    const requests = stubApi({
      "POST /api/v1/streams/stream01/destinations/north/tables:copy": { status: 202, body: {} },
    });
    show(differs);
    await userEvent.click(screen.getByRole("button", { name: "Copy public.orders again" }));
    const dialog = await screen.findByRole("dialog", { name: "Copy again: public.orders" });
    expect(dialog).toHaveTextContent("Deletes all its rows in north");
    await expectNoAxeViolations();
    await userEvent.click(screen.getByRole("button", { name: "Copy again" }));
    expect(await requests[0]?.json()).toEqual({ schema: "public", table: "orders" });
  });

  it("takes a reason, and shows the REST call that carries it", async () => {
    const requests = stubApi({
      "POST /api/v1/streams/stream01/destinations/north/tables:copy": { status: 202, body: {} },
    });
    show(differs);
    await userEvent.click(screen.getByRole("button", { name: "Copy public.orders again" }));
    const dialog = await screen.findByRole("dialog", { name: "Copy again: public.orders" });
    const reason = within(dialog).getByRole("textbox", { name: "Reason" });
    await waitFor(() => expect(reason).toHaveFocus());
    expect(reason).toHaveAttribute("maxlength", "1000");
    await userEvent.type(reason, " CH ");
    expect(within(dialog).getByRole("button", { name: "Copy again" })).toBeDisabled();
    await userEvent.type(reason, "G-7 ");
    expect(within(dialog).getByText(/curl -X POST/)).toHaveTextContent(
      /north\/tables:copy.*"reason": "CH G-7"/,
    );
    await expectNoAxeViolations();
    await userEvent.keyboard("{Enter}");
    await waitFor(() => expect(requests).toHaveLength(1));
    expect(await requests[0]?.json()).toEqual({ schema: "public", table: "orders", reason: "CH G-7" });
  });

  it("forgets the reason of a copy that was not made", async () => {
    show(differs);
    const open = () => userEvent.click(screen.getByRole("button", { name: "Copy public.orders again" }));
    await open();
    await userEvent.type(await screen.findByRole("textbox", { name: "Reason" }), "the wrong table");
    await userEvent.click(screen.getByRole("button", { name: "Cancel" }));
    await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
    await open();
    expect(await screen.findByRole("textbox", { name: "Reason" })).toHaveValue("");
  });

  it("offers one button for each destination that has the error", () => {
    show({ ...differs, code: "missing_table", side: null, table: '"public"."items"' }, [
      { id: "north", name: "north" },
      { id: "south", name: "south" },
    ]);
    expect(screen.getByRole("button", { name: "Copy public.items again in north" })).toBeEnabled();
    expect(screen.getByRole("button", { name: "Copy public.items again in south" })).toBeEnabled();
  });

  it.each([
    ["another error", { ...differs, code: "disk_full" }],
    ["the source's table", { ...differs, code: "missing_table", side: "source" as const }],
    ["no table", { ...differs, table: null }],
    ["a table that the stream does not have", { ...differs, table: '"public"."other"' }],
  ])("has no button for %s", (_, error) => {
    show(error);
    expect(screen.queryByRole("button")).toBeNull();
  });

  it("is not for those who only read", () => {
    show(differs, undefined, false);
    expect(screen.getByRole("button", { name: "Copy public.orders again" })).toBeDisabled();
  });
});
