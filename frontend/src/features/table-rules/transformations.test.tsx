import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { expect, it, vi } from "vitest";
import type { TableRules } from "@/api/types";
import { keylessTable } from "@/test/data";
import { expectNoAxeViolations, renderUi, stubApi } from "@/test/render";
import { completeRules, toggled } from "./matching";
import { Transformations } from "./transformations";

const people = { ...keylessTable, table: "people", identified: true, replicable: true };
const all: TableRules = { include: [{ schema: "public", table: "*" }], exclude: [] };
const steps = [
  { type: "rename_column" as const, column: "mail", to: "email" },
  { type: "mask_column" as const, column: "email", with: "partial" as const, keep_first: 1, keep_last: 0 },
];
const transformed = { ...all, transformations: [{ schema: "public", table: "people", steps }] };

function Form({ given = all, onChange }: { given?: TableRules; onChange: (rules: TableRules) => void }) {
  const [rules, setRules] = useState(given);
  const change = (next: TableRules) => {
    onChange(next);
    setRules(next);
  };
  return <Transformations sourceId="source01" tables={[people]} rules={rules} onChange={change} />;
}

const press = (name: string) => userEvent.click(screen.getByRole("button", { name }));

it("gives a table transformations, each of which finds the names that those before it left", async () => {
  stubApi({
    "GET /api/v1/databases/source01/columns": {
      body: { columns: ["id", "mail"].map((name) => ({ name, type: "text", not_null: false })) },
    },
  });
  const onChange = vi.fn();
  const given = {
    ...all,
    transformations: [{ schema: "public", table: "people", steps: steps.slice(0, 1) }],
  };
  renderUi(<Form given={given} onChange={onChange} />);
  await press("Transformations of public.people");
  await press("Add a transformation");
  expect(screen.getByRole("button", { name: "Use these transformations" })).toBeDisabled();
  const second = within(screen.getByRole("group", { name: "Transformation 2" }));
  await userEvent.click(second.getByRole("combobox", { name: "Column" }));
  await userEvent.click(await screen.findByRole("option", { name: "email" }));
  const keep = second.getByRole("textbox", { name: "First kept" });
  await userEvent.clear(keep);
  await userEvent.click(keep);
  await userEvent.paste("1");
  await press("Use these transformations");
  expect(onChange).toHaveBeenLastCalledWith(transformed);
  expect(screen.getByText("mail → email, email masked")).toBeVisible();
});

it("takes a table's last transformation away, and the table out of the list", async () => {
  stubApi({ "GET /api/v1/databases/source01/columns": { body: { columns: [] } } });
  const onChange = vi.fn();
  const given = {
    ...all,
    transformations: [{ schema: "public", table: "people", steps: steps.slice(0, 1) }],
  };
  renderUi(<Form given={given} onChange={onChange} />);
  await press("Transformations of public.people");
  await expectNoAxeViolations();
  await press("Remove transformation 1");
  await press("Use these transformations");
  expect(onChange).toHaveBeenLastCalledWith({ ...all, transformations: [] });
});

it("is sent with the rules, and goes with its table", () => {
  expect(completeRules(transformed)).toEqual(transformed);
  expect(completeRules({ ...all, transformations: [] })).toEqual(all);
  expect(toggled(transformed, people).transformations).toEqual([]);
});
