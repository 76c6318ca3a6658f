import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { expect, it } from "vitest";
import type { ConflictHandler } from "@/api/types";
import { renderUi } from "@/test/render";
import { ConflictHandlers } from "./conflict-handlers";

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
    "A table is named with its schema.",
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
