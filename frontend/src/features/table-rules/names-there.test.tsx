import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { describe, expect, it } from "vitest";
import type { TableRules } from "@/api/types";
import { expectNoAxeViolations, renderUi } from "@/test/render";
import { completeRules, toggled } from "./matching";
import { NamesThere } from "./names-there";
import { nameThere, renameInWords } from "./renames";

const all: TableRules = { include: [{ schema: "sales", table: "*" }] };
const orders = { schema: "sales", table: "orders" };
const refunds = { schema: "sales", table: "refunds" };

function renderNames(rules: TableRules) {
  let last = rules;
  function Form() {
    const [kept, setKept] = useState(rules);
    last = kept;
    return <NamesThere tables={[orders, refunds]} rules={kept} onChange={setKept} />;
  }
  renderUi(<Form />);
  return () => completeRules(last);
}

describe("NamesThere", () => {
  it("gives a schema and one of its tables other names", async () => {
    const rules = renderNames(all);
    await userEvent.click(screen.getByRole("combobox", { name: "Rename a table or schema" }));
    await userEvent.click(await screen.findByRole("option", { name: "sales.*" }));
    expect(rules().renames).toBeUndefined();
    await userEvent.type(screen.getByLabelText("Schema of sales.* at the destinations"), "archive");
    await userEvent.click(screen.getByRole("combobox", { name: "Rename a table or schema" }));
    expect(screen.queryByRole("option", { name: "sales.*" })).toBeNull();
    await userEvent.click(await screen.findByRole("option", { name: "sales.orders" }));
    expect(screen.getByLabelText("Schema of sales.orders at the destinations")).toHaveAttribute(
      "placeholder",
      "archive",
    );
    await userEvent.type(screen.getByLabelText("Name of sales.orders at the destinations"), "sold");
    expect(rules().renames).toEqual([
      { schema: "sales", table: null, to_schema: "archive", to_table: null },
      { ...orders, to_schema: null, to_table: "sold" },
    ]);
    expect(nameThere(rules(), orders)).toEqual({ schema: "archive", table: "sold" });
    expect(nameThere(rules(), refunds)).toEqual({ schema: "archive", table: "refunds" });
    await expectNoAxeViolations();
  });

  it("takes a name away, also that of a table that is not replicated any more", async () => {
    const named = { ...all, renames: [{ ...orders, to_table: "sold" }] };
    const rules = renderNames(named);
    await userEvent.click(screen.getByRole("button", { name: "Keep the name of sales.orders" }));
    expect(rules().renames).toBeUndefined();
    expect(completeRules(toggled(named, orders)).renames).toBeUndefined();
    expect(completeRules(toggled(named, refunds)).renames).toEqual(named.renames);
  });

  it("says that a name is too long in bytes", async () => {
    renderNames({ ...all, renames: [{ ...orders, to_table: "ä".repeat(32) }] });
    expect(screen.getByText("At most 63 bytes.")).toBeVisible();
  });

  it("puts renames into words", () => {
    expect(renameInWords({ schema: "sales", to_schema: "archive" })).toBe("sales.* → archive.*");
    expect(renameInWords({ ...orders, to_table: "sold" })).toBe("sales.orders → sales.sold");
  });
});
