import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { expect, it } from "vitest";
import type { StatementHandler } from "@/api/types";
import { renderUi } from "@/test/render";
import { StatementHandlers } from "./statement-handlers";

let last: StatementHandler[] = [];

function Editor({ handlers, mayChange = true }: { handlers: StatementHandler[]; mayChange?: boolean }) {
  const [now, setNow] = useState(handlers);
  last = now;
  return <StatementHandlers handlers={now} onChange={setNow} mayChange={mayChange} />;
}

it("adds a statement, and says what cannot be", async () => {
  renderUi(<Editor handlers={[]} />);
  await userEvent.click(screen.getByRole("button", { name: "Add a statement" }));
  expect(last).toEqual([{ when: "after", statement: "" }]);
  const entry = screen.getByRole("group", { name: "Statement 1" });
  expect(entry).toHaveTextContent("Write the statement.");
  await userEvent.type(screen.getByRole("textbox", { name: "Statement" }), "SELECT a.note(:new.id)");
  expect(entry).toHaveTextContent(":new.id is a column of one table: name the table.");
  await userEvent.type(screen.getByRole("textbox", { name: "Table" }), "orders");
  expect(entry).toHaveTextContent("Name the schema and the table together.");
  await userEvent.type(screen.getByRole("textbox", { name: "Schema" }), "public");
  await userEvent.click(screen.getByRole("combobox", { name: "Operations" }));
  await userEvent.click(await screen.findByRole("option", { name: "DELETE" }));
  expect(last).toEqual([
    {
      when: "after",
      schema: "public",
      table: "orders",
      operations: ["DELETE"],
      statement: "SELECT a.note(:new.id)",
    },
  ]);
});

it("has no table at the end of a transaction, and none of a change's names", async () => {
  renderUi(
    <Editor
      handlers={[
        {
          when: "after",
          schema: "public",
          table: "orders",
          operations: ["INSERT"],
          statement: "SELECT :table",
        },
      ]}
    />,
  );
  await userEvent.click(screen.getByRole("combobox", { name: "When" }));
  await userEvent.click(await screen.findByRole("option", { name: "At the end of each transaction" }));
  expect(last).toEqual([{ when: "precommit", statement: "SELECT :table" }]);
  expect(screen.queryByRole("textbox", { name: "Table" })).toBeNull();
  expect(screen.getByRole("group", { name: "Statement 1" })).toHaveTextContent(":table belongs to a change");
});

it("takes the place of changes that fail with some errors, and has their names", async () => {
  renderUi(
    <Editor handlers={[{ when: "after", statement: "INSERT INTO audit.refused VALUES (:error, :kind)" }]} />,
  );
  const entry = screen.getByRole("group", { name: "Statement 1" });
  expect(entry).toHaveTextContent(":error belongs to an error");
  await userEvent.click(screen.getByRole("combobox", { name: "When" }));
  await userEvent.click(await screen.findByRole("option", { name: "In the place of a change that fails" }));
  expect(entry).not.toHaveTextContent("belongs to an error");
  const errors = screen.getByRole("combobox", { name: "Errors" });
  await userEvent.type(errors, "23505{Enter}nothing{Enter}");
  expect(last[0]?.errors).toEqual(["23505", "nothing"]);
  expect(entry).toHaveTextContent("Each error is an SQLSTATE in upper case");
  await userEvent.type(errors, "{Backspace}");
  expect(entry).not.toHaveTextContent("Each error is");
  expect(last).toEqual([
    { when: "error", errors: ["23505"], statement: "INSERT INTO audit.refused VALUES (:error, :kind)" },
  ]);
  await userEvent.click(screen.getByRole("combobox", { name: "When" }));
  await userEvent.click(await screen.findByRole("option", { name: "After each change" }));
  expect(last[0]).not.toHaveProperty("errors");
  expect(screen.queryByRole("combobox", { name: "Errors" })).toBeNull();
});

it("puts them in another order, and removes one: they are executed in this order", async () => {
  renderUi(
    <Editor
      handlers={[
        { when: "precommit", statement: "SELECT 1" },
        { when: "precommit", statement: "SELECT 2" },
      ]}
    />,
  );
  await userEvent.click(screen.getByRole("button", { name: "Move statement 2 up" }));
  expect(last.map(({ statement }) => statement)).toEqual(["SELECT 2", "SELECT 1"]);
  await userEvent.click(screen.getByRole("button", { name: "Remove statement 1" }));
  expect(last).toEqual([{ when: "precommit", statement: "SELECT 1" }]);
});

it("is there to be read for those who are no administrators", () => {
  renderUi(<Editor handlers={[{ when: "precommit", statement: "SELECT 1" }]} mayChange={false} />);
  expect(screen.getByText(/Only administrators may change/)).toBeVisible();
  expect(screen.getByRole("textbox", { name: "Statement" })).toBeDisabled();
  expect(screen.getByRole("button", { name: "Add a statement" })).toBeDisabled();
});
