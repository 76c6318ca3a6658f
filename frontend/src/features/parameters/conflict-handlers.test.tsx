import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { expect, it } from "vitest";
import type { ConflictHandler } from "@/api/types";
import { renderUi } from "@/test/render";
import { ConflictHandlers } from "./conflict-handlers";
import { handlerFault } from "./handler-fault";

let last: ConflictHandler[] = [];

function Editor({ handlers }: { handlers: ConflictHandler[] }) {
  const [now, setNow] = useState(handlers);
  last = now;
  return <ConflictHandlers handlers={now} onChange={setNow} />;
}

it("adds a handler, and says what cannot be", async () => {
  renderUi(<Editor handlers={[]} />);
  await userEvent.click(screen.getByRole("button", { name: "Add a handler" }));
  expect(last).toEqual([{ kind: "insert_exists", action: "discard" }]);
  await userEvent.click(screen.getByRole("combobox", { name: "Action" }));
  await userEvent.click(await screen.findByRole("option", { name: "Overwrite" }));
  await userEvent.type(screen.getByRole("textbox", { name: "Table" }), "orders");
  expect(screen.getByRole("group", { name: "Handler 1" })).toHaveTextContent(
    "Name the schema and the table together.",
  );
  await userEvent.type(screen.getByRole("textbox", { name: "Schema" }), "public");
  expect(last).toEqual([{ kind: "insert_exists", schema: "public", table: "orders", action: "overwrite" }]);
  await userEvent.click(screen.getByRole("combobox", { name: "Conflict" }));
  await userEvent.click(await screen.findByRole("option", { name: "DELETE: no such row" }));
  expect(screen.getByRole("group", { name: "Handler 1" })).toHaveTextContent("There is nothing to overwrite");
});

it("puts them in another order, and removes one: the first that matches decides", async () => {
  renderUi(
    <Editor
      handlers={[
        { kind: "insert_exists", action: "discard" },
        { kind: "delete_missing", action: "discard" },
      ]}
    />,
  );
  await userEvent.click(screen.getByRole("button", { name: "Move handler 2 up" }));
  expect(last.map(({ kind }) => kind)).toEqual(["delete_missing", "insert_exists"]);
  await userEvent.click(screen.getByRole("button", { name: "Remove handler 1" }));
  expect(last).toEqual([{ kind: "insert_exists", action: "discard" }]);
});

it("says which handlers cannot stand beside groups of columns", () => {
  const group: ConflictHandler = {
    kind: "update_origin_differs",
    schema: "public",
    table: "stock",
    action: "delta",
    columns: ["amount"],
  };
  const any: ConflictHandler = { kind: "update_origin_differs", action: "discard" };
  const latest: ConflictHandler = { ...any, action: "latest" };
  renderUi(<Editor handlers={[group, latest, any, { ...group, columns: ["note"] }]} />);
  const texts = screen.getAllByRole("group", { name: /^Handler/ }).map((one) => one.textContent);
  expect(texts[0]).not.toContain("above decides");
  expect(texts[1]).toContain("the commit time cannot decide");
  expect(texts[2]).toContain("A handler above decides about the same rows");
  expect(texts[3]).toContain("A handler above decides about all columns");
});

it("lets one row win by a column, for a group of columns, and keeps groups apart", async () => {
  const first: ConflictHandler = {
    kind: "update_origin_differs",
    schema: "public",
    table: "stock",
    action: "delta",
    columns: ["amount"],
  };
  renderUi(<Editor handlers={[first, { ...first, action: "discard", columns: ["note", "amount"] }]} />);
  const second = screen.getByRole("group", { name: "Handler 2" });
  expect(second).toHaveTextContent("A handler above decides about amount.");
  const of = within(second);
  await userEvent.click(of.getByRole("combobox", { name: "Action" }));
  await userEvent.click(await screen.findByRole("option", { name: "The higher value wins" }));
  await userEvent.type(of.getByRole("combobox", { name: "Group of columns" }), "{Backspace}");
  expect(second).toHaveTextContent("Name the column that decides.");
  await userEvent.type(of.getByRole("textbox", { name: "By the column" }), "changed");
  await userEvent.click(of.getByRole("combobox", { name: "Where both are the same" }));
  await userEvent.click(await screen.findByRole("option", { name: "The source's wins" }));
  expect(last[1]).toEqual({
    ...first,
    action: "maximum",
    columns: ["note"],
    by: "changed",
    tie: "overwrite",
  });
  await userEvent.click(of.getByRole("combobox", { name: "Action" }));
  await userEvent.click(await screen.findByRole("option", { name: "Leave the change out" }));
  expect(last[1]).toEqual({ ...first, action: "discard", columns: ["note"] });
});

it("lets a list of values decide, and takes it away with another action", async () => {
  renderUi(
    <Editor handlers={[{ kind: "insert_exists", schema: "public", table: "stock", action: "discard" }]} />,
  );
  const fields = screen.getByRole("group", { name: "Handler 1" });
  const choose = async (name: string) => {
    await userEvent.click(within(fields).getByRole("combobox", { name: "Action" }));
    await userEvent.click(await screen.findByRole("option", { name }));
  };
  await choose("The better place in a list wins");
  await userEvent.type(screen.getByRole("textbox", { name: "By the column" }), "site");
  expect(fields).toHaveTextContent("List the values of the column, the best first.");
  await userEvent.type(
    screen.getByRole("combobox", { name: "Its values, the best first" }),
    "headquarters{Enter}branch{Enter}",
  );
  expect(last[0]).toMatchObject({ action: "priority", by: "site", order: ["headquarters", "branch"] });
  expect(fields).not.toHaveTextContent("List the values");
  await choose("The later row wins");
  expect(last[0]).toEqual({
    kind: "insert_exists",
    schema: "public",
    table: "stock",
    action: "latest",
    by: "site",
  });
});

it("takes an SQL expression for one column", async () => {
  renderUi(
    <Editor
      handlers={[
        {
          kind: "update_origin_differs",
          schema: "public",
          table: "stock",
          action: "expression",
          columns: ["price", "amount"],
        },
      ]}
    />,
  );
  const fields = screen.getByRole("group", { name: "Handler 1" });
  expect(fields).toHaveTextContent("Name one column: each needs an expression of its own.");
  await userEvent.type(screen.getByRole("combobox", { name: "Group of columns" }), "{Backspace}");
  expect(fields).toHaveTextContent("Write what the column gets.");
  await userEvent.type(screen.getByRole("textbox", { name: "Expression" }), "greatest(new.price, t.price)");
  expect(last[0]).toMatchObject({ columns: ["price"], expression: "greatest(new.price, t.price)" });
  expect(fields).not.toHaveTextContent("Write what the column gets.");
});

it.each([
  ["append", "insert_exists", null],
  ["merge", "update_origin_differs", null],
  ["append", "update_missing", "has two rows"],
  ["delta", "insert_exists", "has an old value"],
  ["priority", "delete_missing", "has two rows"],
] as const)("says whether %s can settle %s", (action, kind, fault) => {
  const handler: ConflictHandler = {
    kind,
    schema: "public",
    table: "stock",
    action,
    ...(action === "priority" ? { by: "site", order: ["a"] } : { columns: ["tags"] }),
  };
  if (fault === null) expect(handlerFault(handler)).toBeNull();
  else expect(handlerFault(handler)).toContain(fault);
});
