import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { describe, expect, it, vi } from "vitest";
import type { SourceTable, TableRules } from "@/api/types";
import { keylessTable as log } from "@/test/data";
import { expectNoAxeViolations, renderUi } from "@/test/render";
import { InsertsOnly } from "./inserts-only";

const orders: SourceTable = { ...log, table: "orders", identified: true, replicable: true, unsupported: [] };
const all: TableRules = { include: [{ schema: "public", table: "*" }], exclude: [] };
const given = { ...all, inserts_only: [{ schema: "public", table: "log" }] };

function Choice({ onChange }: { onChange: (rules: TableRules) => void }) {
  const [rules, setRules] = useState(all);
  const change = (next: TableRules) => {
    onChange(next);
    setRules(next);
  };
  return <InsertsOnly tables={[log, orders]} rules={rules} onChange={change} />;
}

describe("InsertsOnly", () => {
  it("asks for each table without a key, and says what is given up", async () => {
    const onChange = vi.fn();
    renderUi(<Choice onChange={onChange} />);
    expect(screen.getByText(/rows that the source has changed or deleted/)).toBeVisible();
    expect(screen.getAllByRole("checkbox")).toHaveLength(1);
    const box = screen.getByRole("checkbox", { name: "Give up updates and deletes of public.log" });
    expect(box).not.toBeChecked();
    await userEvent.click(box);
    expect(onChange).toHaveBeenLastCalledWith(given);
    expect(box).toBeChecked();
    await userEvent.click(box);
    expect(onChange).toHaveBeenLastCalledWith({ ...all, inserts_only: [] });
    await expectNoAxeViolations();
  });

  it("is silent where every table has a key", () => {
    renderUi(<InsertsOnly tables={[orders]} rules={all} onChange={() => {}} />);
    expect(screen.queryByText("Inserts only")).toBeNull();
  });
});
