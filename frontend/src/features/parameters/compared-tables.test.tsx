import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { expect, it } from "vitest";
import type { ComparedTable } from "@/api/types";
import { renderUi } from "@/test/render";
import { ComparedTables } from "./compared-tables";

let last: ComparedTable[] = [];

function Editor({ tables }: { tables: ComparedTable[] }) {
  const [now, setNow] = useState(tables);
  last = now;
  return <ComparedTables tables={now} onChange={setNow} />;
}

it("adds a table with columns, and says what cannot be", async () => {
  renderUi(<Editor tables={[]} />);
  await userEvent.click(screen.getByRole("button", { name: "Compare a table" }));
  expect(last).toEqual([{}]);
  await userEvent.type(screen.getByRole("combobox", { name: "Columns" }), "amount{Enter}note{Enter}");
  const entry = screen.getByRole("group", { name: "Compared table 1" });
  expect(entry).toHaveTextContent("Columns belong to one table: name the table.");
  await userEvent.type(screen.getByRole("textbox", { name: "Table" }), "stock");
  expect(entry).toHaveTextContent("Name the schema and the table together.");
  await userEvent.type(screen.getByRole("textbox", { name: "Schema" }), "public");
  expect(last).toEqual([{ schema: "public", table: "stock", columns: ["amount", "note"] }]);
  expect(entry).not.toHaveTextContent("name it");
});

it("says which entry never decides, and removes one", async () => {
  renderUi(<Editor tables={[{}, { schema: "public", table: "stock" }]} />);
  expect(screen.getByRole("group", { name: "Compared table 2" })).toHaveTextContent(
    "An entry above already covers this table",
  );
  await userEvent.click(screen.getByRole("button", { name: "Remove compared table 1" }));
  expect(last).toEqual([{ schema: "public", table: "stock" }]);
  expect(screen.getByRole("group", { name: "Compared table 1" })).not.toHaveTextContent("decides");
});
