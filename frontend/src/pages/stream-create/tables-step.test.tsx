import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { describe, expect, it } from "vitest";
import type { SourceTable, TableRules } from "@/api/types";
import { usePreview } from "@/features/table-rules/use-preview";
import { keylessTable as log } from "@/test/data";
import { expectNoAxeViolations, renderUi, stubApi } from "@/test/render";
import { TablesStep } from "./tables-step";

const taken: SourceTable = { ...log, inserts_only: true, replicable: true, unsupported: [] };

function Step() {
  const [rules, setRules] = useState<TableRules>({
    include: [{ schema: "public", table: "*" }],
    exclude: [],
  });
  const preview = usePreview("source01", rules);
  return (
    <TablesStep
      sourceId="source01"
      captureEngineId={null}
      rules={rules}
      onChange={setRules}
      preview={preview}
    />
  );
}

describe("TablesStep", () => {
  it("takes the inserts of a table without a key once somebody says so", async () => {
    stubApi({
      "GET /api/v1/databases/source01/tables": { body: { items: [log], next_cursor: null } },
      "POST /api/v1/streams:preview-tables": async (request) => {
        const { rules } = (await request.json()) as { rules: TableRules };
        const table = rules.inserts_only?.length ? taken : log;
        const replicable = table.replicable ? 1 : 0;
        return { body: { tables: [table], replicable, bytes: 8192, rows_estimated: 10, unmatched: [] } };
      },
    });
    renderUi(<Step />);
    expect(await screen.findByRole("alert")).toHaveTextContent("or replicate its inserts only");
    const row = (await screen.findByRole("checkbox", { name: "Replicate public.log" })).closest("tr");
    expect(row).toHaveTextContent("neither a primary key");
    await userEvent.click(
      screen.getByRole("checkbox", { name: "Give up updates and deletes of public.log" }),
    );
    expect(await within(row as HTMLElement).findByText("inserts only")).toBeVisible();
    expect(row).not.toHaveTextContent("neither a primary key");
    expect(screen.queryByRole("alert")).toBeNull();
    expect(screen.getByRole("status")).toHaveTextContent("1 table will be replicated");
    await expectNoAxeViolations();
  });
});
