import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { expect, it, vi } from "vitest";
import type { TableRules, Transformation } from "@/api/types";
import { keylessTable } from "@/test/data";
import { expectNoAxeViolations, renderUi, stubApi } from "@/test/render";
import { hidingMaskKey, maskKeyOf } from "./mask-key";
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
  const [key, setKey] = useState("");
  const change = (next: TableRules) => {
    onChange(next);
    setRules(next);
  };
  const maskKey = { value: key, onChange: setKey, isSet: false };
  return (
    <Transformations
      sourceId="source01"
      tables={[people]}
      rules={rules}
      onChange={change}
      maskKey={maskKey}
    />
  );
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
  const keep = second.getByRole("textbox", { name: "Keep first" });
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

it("keeps some columns, and adds others", async () => {
  stubApi({
    "GET /api/v1/databases/source01/columns": {
      body: { columns: ["id", "mail", "notes"].map((name) => ({ name, type: "text", not_null: false })) },
    },
  });
  const kept: Transformation[] = [
    { type: "add_column", column: "site", data_type: "integer", value: "7" },
    { type: "keep_columns", columns: ["id", "site"] },
  ];
  const onChange = vi.fn();
  const given = { ...all, transformations: [{ schema: "public", table: "people", steps: kept }] };
  renderUi(<Form given={given} onChange={onChange} />);
  expect(screen.getByText("site added, only id, site kept")).toBeVisible();
  await press("Transformations of public.people");
  const added = within(screen.getByRole("group", { name: "Transformation 1" }));
  await userEvent.type(added.getByRole("textbox", { name: "Constant" }), "7");
  const columns = within(screen.getByRole("group", { name: "Transformation 2" })).getByRole("combobox", {
    name: "Columns",
  });
  await userEvent.click(columns);
  expect(await screen.findByRole("option", { name: "mail" })).toBeVisible();
  expect(screen.getByRole("option", { name: "notes" })).toBeVisible();
  await userEvent.click(screen.getByRole("option", { name: "mail" }));
  await expectNoAxeViolations();
  await press("Use these transformations");
  expect(onChange.mock.lastCall?.[0].transformations[0].steps).toEqual([
    { type: "add_column", column: "site", data_type: "integer", value: "77" },
    { type: "keep_columns", columns: ["id", "site", "mail"] },
  ]);
});

it("computes a column from others, and casts one", async () => {
  stubApi({
    "GET /api/v1/databases/source01/columns": {
      body: { columns: ["id", "mail"].map((name) => ({ name, type: "text", not_null: false })) },
    },
  });
  const computed: Transformation[] = [
    { type: "add_column", column: "size", data_type: "integer", expression: "length(mail)" },
    { type: "cast_column", column: "mail", data_type: "character varying" },
  ];
  const onChange = vi.fn();
  const given = { ...all, transformations: [{ schema: "public", table: "people", steps: computed }] };
  renderUi(<Form given={given} onChange={onChange} />);
  expect(screen.getByText("size computed, mail cast to character varying")).toBeVisible();
  await press("Transformations of public.people");
  const first = within(screen.getByRole("group", { name: "Transformation 1" }));
  const expression = first.getByRole("textbox", { name: "Expression" });
  await userEvent.clear(expression);
  expect(screen.getByRole("button", { name: "Use these transformations" })).toBeDisabled();
  await userEvent.click(expression);
  await userEvent.paste("length(mail) + 1");
  const second = within(screen.getByRole("group", { name: "Transformation 2" }));
  await userEvent.click(second.getByRole("combobox", { name: "Type" }));
  expect(screen.queryByRole("option", { name: "jsonb" })).toBeNull();
  await userEvent.click(await screen.findByRole("option", { name: "text" }));
  await expectNoAxeViolations();
  await press("Use these transformations");
  expect(onChange.mock.lastCall?.[0].transformations[0].steps).toEqual([
    { type: "add_column", column: "size", data_type: "integer", expression: "length(mail) + 1" },
    { type: "cast_column", column: "mail", data_type: "text" },
  ]);
});

it("takes a key only where a mask needs it, and one that nobody guesses", async () => {
  const hash = {
    type: "mask_column" as const,
    column: "mail",
    with: "hash" as const,
    keep_first: 0,
    keep_last: 0,
  };
  const hashed = { ...all, transformations: [{ schema: "public", table: "people", steps: [hash] }] };
  const { unmount } = renderUi(<Form given={transformed} onChange={vi.fn()} />);
  expect(screen.queryByLabelText("Masking key")).toBeNull();
  unmount();
  renderUi(<Form given={hashed} onChange={vi.fn()} />);
  const field = screen.getByLabelText("Masking key");
  expect(field).toHaveAttribute("type", "password");
  await userEvent.type(field, "short");
  expect(screen.getByText("The masking key needs at least 32 characters.")).toBeVisible();
  await expectNoAxeViolations();

  const key = "a key of at least 32 characters.";
  expect(maskKeyOf(hashed, key)).toEqual({ mask_key: key });
  expect(maskKeyOf(hashed, "")).toEqual({});
  expect(maskKeyOf(transformed, key)).toEqual({});
  expect(hidingMaskKey({ mask_key: key, start: true })).toEqual({ mask_key: "********", start: true });
});

it("is sent with the rules, and goes with its table", () => {
  expect(completeRules(transformed)).toEqual(transformed);
  expect(completeRules({ ...all, transformations: [] })).toEqual(all);
  expect(toggled(transformed, people).transformations).toEqual([]);
});
