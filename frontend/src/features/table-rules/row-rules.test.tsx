import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { describe, expect, it, vi } from "vitest";
import type { SourceTable, TableRules } from "@/api/types";
import { keylessTable } from "@/test/data";
import { expectNoAxeViolations, renderUi, stubApi } from "@/test/render";
import { completeRules, toggled } from "./matching";
import { RowRules } from "./row-rules";

const orders: SourceTable = { ...keylessTable, table: "orders", identified: true, replicable: true };
const all: TableRules = { include: [{ schema: "public", table: "*" }], exclude: [] };
const north = { name: "north", condition: "regoin = 'north'", subset: true, on_error: "stop" as const };
const noPurges = {
  name: "no_purges",
  operations: ["DELETE" as const, "TRUNCATE" as const],
  subset: false,
  on_error: "stop" as const,
};
const ofOrders = { scope: "table" as const, schema: "public", table: "orders" };
const own = { ...ofOrders, positive: [north], negative: [noPurges] };

function Form({ given = all, onChange }: { given?: TableRules; onChange: (rules: TableRules) => void }) {
  const [rules, setRules] = useState(given);
  const change = (next: TableRules) => {
    onChange(next);
    setRules(next);
  };
  return (
    <RowRules
      sourceId="source01"
      captureEngineId="engine01"
      tables={[orders]}
      rules={rules}
      onChange={change}
    />
  );
}

const press = (name: string) => userEvent.click(screen.getByRole("button", { name }));

async function fill(box: HTMLElement, text: string) {
  await userEvent.clear(box);
  await userEvent.click(box);
  await userEvent.paste(text);
}

describe("RowRules", () => {
  it("gives a table rules of both kinds", async () => {
    const onChange = vi.fn();
    renderUi(<Form onChange={onChange} />);
    await userEvent.click(screen.getByRole("combobox", { name: "Add rules" }));
    await userEvent.click(await screen.findByRole("option", { name: "public.orders" }));
    const dialog = await screen.findByRole("dialog", { name: "Rules of public.orders" });
    await press("Add a positive rule");
    expect(screen.getByRole("button", { name: "Use these rules" })).toBeDisabled();
    await fill(screen.getByRole("textbox", { name: "Name of the rule" }), "north");
    await fill(screen.getByRole("textbox", { name: "Condition" }), "regoin = 'north'");
    const subset = screen.getByRole("checkbox", { name: "Subset: rows come and go" });
    await userEvent.click(subset);
    await press("Add a negative rule");
    const negative = within(screen.getByRole("group", { name: "Negative rule" }));
    const name = negative.getByRole("textbox", { name: "Name of the rule" });
    await fill(name, "north");
    expect(negative.getByText("Another rule for the table has this name.")).toBeVisible();
    await fill(name, "no_purges");
    await userEvent.click(negative.getByRole("checkbox", { name: "TRUNCATE" }));
    await userEvent.click(negative.getByRole("checkbox", { name: "DELETE" }));
    expect(subset).toBeEnabled();
    await press("Use these rules");
    expect(onChange).toHaveBeenLastCalledWith({ ...all, row_rules: [own] });
    await vi.waitFor(() => expect(dialog).not.toBeVisible());
    expect(screen.getByText(/north, no_purges/)).toBeVisible();
  });

  it("gives a rule a policy for changes that its condition cannot be evaluated for", async () => {
    const onChange = vi.fn();
    renderUi(<Form given={{ ...all, row_rules: [own] }} onChange={onChange} />);
    await press("Rules of public.orders");
    await screen.findByRole("dialog", { name: "Rules of public.orders" });
    const name = "If the condition cannot be evaluated";
    // The negative rule has no condition.
    const policy = screen.getByRole("combobox", { name });
    expect(policy).toHaveValue("Stop the stream");
    await userEvent.click(policy);
    await userEvent.click(await screen.findByRole("option", { name: "Treat it as not true" }));
    await expectNoAxeViolations();
    await press("Use these rules");
    const decided = { ...own, positive: [{ ...north, on_error: "as_false" }] };
    expect(onChange).toHaveBeenLastCalledWith({ ...all, row_rules: [decided] });
    await press("Rules of public.orders");
    expect(await screen.findByRole("combobox", { name })).toHaveValue("Treat it as not true");
    await userEvent.clear(
      within(screen.getByRole("group", { name: "Positive rule" })).getByRole("textbox", {
        name: "Condition",
      }),
    );
    expect(screen.queryByRole("combobox", { name })).toBeNull();
  });

  it("shows what the engine finds where it is, until the text changes", async () => {
    const sent: unknown[] = [];
    const finding = {
      schema: "public",
      table: "orders",
      rule: "north",
      scope: "table" as const,
      code: "rule_refused",
      message: 'the table has no column "regoin"',
      cure: "Correct the rule.",
      line: 1,
      column: 1,
      offset: 0,
      certain: true,
    };
    stubApi({
      "GET /api/v1/databases/source01/columns": { body: { columns: [] } },
      "POST /api/v1/streams:check-rules": async (request) => {
        sent.push(await request.json());
        return { body: { problems: sent.length === 1 ? [finding] : [] } };
      },
    });
    renderUi(<Form given={{ ...all, row_rules: [own] }} onChange={() => {}} />);
    await press("Rules of public.orders");
    await userEvent.click(await screen.findByRole("button", { name: "Check" }));
    const alert = await screen.findByRole("alert");
    expect(alert).toHaveTextContent('Line 1, column 1: the table has no column "regoin"');
    expect(alert.querySelector("mark")).toHaveTextContent(/^regoin$/);
    await expectNoAxeViolations();
    expect(sent).toEqual([{ source_id: "source01", capture_engine_id: "engine01", row_rules: [own] }]);
    const positive = within(screen.getByRole("group", { name: "Positive rule" }));
    await userEvent.clear(positive.getByRole("textbox", { name: "Condition" }));
    expect(screen.queryByRole("alert")).toBeNull();
    await press("Check");
    expect(await screen.findByText("The rules fit the table at the source.")).toBeVisible();
  });

  it("gives rules to all tables of a schema, which are checked against them", async () => {
    const onChange = vi.fn();
    const sent: unknown[] = [];
    const noTests = { name: "no_tests", condition: "tag = 'test'", subset: false, on_error: "stop" as const };
    const finding = {
      schema: "public",
      table: "orders",
      rule: "no_tests",
      scope: "schema" as const,
      code: "rule_refused",
      message: "there is no such column",
      cure: "Narrow its scope.",
      line: 1,
      column: 1,
      offset: 0,
      certain: true,
    };
    stubApi({
      "GET /api/v1/databases/source01/columns": { body: { columns: [] } },
      "POST /api/v1/streams:check-rules": async (request) => {
        sent.push(await request.json());
        return { body: { problems: [finding] } };
      },
      "POST /api/v1/streams:test-rules": async (request) => {
        sent.push(await request.json());
        return { body: { problems: [], changes: [] } };
      },
    });
    const given = { ...all, row_rules: [own], inserts_only: [{ schema: "public", table: "orders" }] };
    renderUi(<Form given={given} onChange={onChange} />);
    await userEvent.click(screen.getByRole("combobox", { name: "Add rules" }));
    const offered = (await screen.findAllByRole("option")).map(({ textContent }) => textContent);
    expect(offered).toEqual(["all tables", "the schema public"]);
    await userEvent.click(screen.getByRole("option", { name: "the schema public" }));
    await press("Add a negative rule");
    await fill(screen.getByRole("textbox", { name: "Name of the rule" }), "no_purges");
    expect(screen.getByText("Another rule for the table has this name.")).toBeVisible();
    await fill(screen.getByRole("textbox", { name: "Name of the rule" }), "no_tests");
    await fill(screen.getByRole("textbox", { name: "Condition" }), "tag = 'test'");
    await press("Check");
    expect(await screen.findByRole("alert")).toHaveTextContent(
      "public.orders: Line 1, column 1: there is no",
    );
    await press("Try");
    expect(await screen.findByText(/the table has no rows/)).toBeVisible();
    const scoped = { scope: "schema", schema: "public", negative: [noTests] };
    const asked = { source_id: "source01", capture_engine_id: "engine01" };
    const insertsOnly = { inserts_only: given.inserts_only };
    expect(sent).toEqual([
      { ...asked, row_rules: [scoped], include: all.include, exclude: [], ...insertsOnly },
      {
        ...asked,
        table: { schema: "public", table: "orders" },
        row_rules: [scoped, own],
        sample: 20,
        changes: [],
      },
    ]);
    await expectNoAxeViolations();
    await press("Use these rules");
    expect(onChange).toHaveBeenLastCalledWith({ ...given, row_rules: [own, scoped] });
    expect(screen.getByRole("button", { name: "Rules of the schema public" })).toBeVisible();
  });

  it("says once what is wrong with a rule for all its tables", async () => {
    const finding = {
      schema: "public",
      table: null,
      rule: "no_tests",
      scope: "schema",
      code: "rule_refused",
      message: "expected 'AND' here",
      cure: "Correct the rule.",
      line: 1,
      column: 13,
      offset: 12,
      certain: true,
    };
    stubApi({
      "GET /api/v1/databases/source01/columns": { body: { columns: [] } },
      "POST /api/v1/streams:check-rules": { body: { problems: [finding] } },
    });
    const broken = {
      name: "no_tests",
      condition: "id BETWEEN 3 AN 5",
      operations: null,
      subset: false,
      on_error: "stop" as const,
    };
    const ofSchema = { scope: "schema" as const, schema: "public", negative: [broken] };
    renderUi(<Form given={{ ...all, row_rules: [ofSchema] }} onChange={() => {}} />);
    await press("Rules of the schema public");
    await userEvent.click(await screen.findByRole("button", { name: "Check" }));
    expect((await screen.findByRole("alert")).textContent).toMatch(/^Line 1, column 13: expected 'AND' here/);
  });

  it("warns of what only some updates would meet", async () => {
    const finding = {
      schema: "public",
      table: "orders",
      rule: "north",
      code: "rule_undecidable",
      message: "it needs a value that an UPDATE does not bring if it is long",
      cure: "Set the table's REPLICA IDENTITY to FULL.",
      line: null,
      column: null,
      offset: null,
      certain: false,
    };
    stubApi({
      "GET /api/v1/databases/source01/columns": { body: { columns: [] } },
      "POST /api/v1/streams:check-rules": { body: { problems: [finding] } },
    });
    renderUi(<Form given={{ ...all, row_rules: [own] }} onChange={() => {}} />);
    await press("Rules of public.orders");
    await userEvent.click(await screen.findByRole("button", { name: "Check" }));
    const positive = within(screen.getByRole("group", { name: "Positive rule" }));
    expect(await positive.findByRole("note")).toHaveTextContent(/if it is long.*REPLICA IDENTITY to FULL/);
    expect(screen.queryByRole("alert")).toBeNull();
    expect(screen.getByText("The rules fit the table at the source.")).toBeVisible();
    await expectNoAxeViolations();
  });

  it("takes the rules away with the last one, and keeps a set that lets nothing pass", async () => {
    const onChange = vi.fn();
    const nothing = { ...ofOrders, positive: [] };
    renderUi(<Form given={{ ...all, row_rules: [nothing] }} onChange={onChange} />);
    expect(screen.getByText("nothing passes")).toBeVisible();
    await press("Rules of public.orders");
    const box = await screen.findByRole("checkbox", { name: "Nothing passes" });
    expect(box).toBeChecked();
    await press("Use these rules");
    expect(onChange).toHaveBeenLastCalledWith({ ...all, row_rules: [nothing] });
    await press("Rules of public.orders");
    await userEvent.click(await screen.findByRole("checkbox", { name: "Nothing passes" }));
    await press("Use these rules");
    expect(onChange).toHaveBeenLastCalledWith({ ...all, row_rules: [] });
  });

  it("are sent with the stream, and go with their table", () => {
    const ruled = { ...all, row_rules: [own] };
    expect(completeRules(ruled).row_rules).toEqual([own]);
    expect(completeRules({ ...ruled, row_rules: [] })).toEqual(all);
    expect(toggled(ruled, orders).row_rules).toEqual([]);
  });
});
