import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { describe, expect, it, vi } from "vitest";
import type { Database, ScopedRules, SourceTable, TableRules } from "@/api/types";
import { usePreview } from "@/features/table-rules/use-preview";
import { database, keylessTable as log } from "@/test/data";
import { expectNoAxeViolations, renderUi, stubApi } from "@/test/render";
import { TablesStep } from "./tables-step";
import { publicRules } from "./wizard-state";

interface StepProps {
  /** The step before it is shown first, as in the wizard, which asks for the preview from then on. */
  before: boolean;
  destinations: Database[];
  onDestinationRules: (databaseId: string, rules: ScopedRules[]) => void;
}

const taken: SourceTable = { ...log, inserts_only: true, replicable: true, unsupported: [] };

function Step({ before = false, destinations = [], onDestinationRules = () => {} }: Partial<StepProps>) {
  const [opened, setOpened] = useState(!before);
  const [rules, setRules] = useState<TableRules>(publicRules);
  const preview = usePreview("source01", rules);
  if (!opened)
    return (
      <button type="button" onClick={() => setOpened(true)}>
        Next, with {preview.data?.unmatched}
      </button>
    );
  return (
    <TablesStep
      sourceId="source01"
      captureEngineId={null}
      rules={rules}
      onChange={setRules}
      maskKey={{ value: "", onChange: () => {}, isSet: false }}
      preview={preview}
      destinations={destinations}
      destinationRules={{}}
      onDestinationRules={onDestinationRules}
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

it("asks for the rules of each destination, too", async () => {
  const onDestinationRules = vi.fn();
  stubApi({
    "GET /api/v1/databases/source01/tables": { body: { items: [taken], next_cursor: null } },
    "GET /api/v1/databases/source01/columns": { body: { columns: [] } },
    "POST /api/v1/streams:preview-tables": {
      body: { tables: [taken], replicable: 1, bytes: 8192, rows_estimated: 10, unmatched: [] },
    },
  });
  renderUi(
    <Step destinations={[database("dest0001", "warehouse")]} onDestinationRules={onDestinationRules} />,
  );
  await userEvent.click(await screen.findByRole("combobox", { name: "Add rules at warehouse" }));
  await userEvent.click(await screen.findByRole("option", { name: "all tables" }));
  expect(await screen.findByRole("dialog", { name: "Rules of all tables at warehouse" })).toBeVisible();
  await userEvent.click(screen.getByRole("checkbox", { name: "Nothing passes" }));
  await userEvent.click(screen.getByRole("button", { name: "Use these rules" }));
  expect(onDestinationRules).toHaveBeenCalledWith("dest0001", [{ scope: "global", positive: [] }]);
});

it("begins without a rule where public is empty, and counts no partitions", async () => {
  const events: SourceTable = { ...taken, schema: "app", table: "events", kind: "partitioned" };
  const partition: SourceTable = { ...events, table: "events_1", kind: "partition", replicable: false };
  stubApi({
    "GET /api/v1/databases/source01/tables": { body: { items: [events, partition], next_cursor: null } },
    "POST /api/v1/streams:preview-tables": {
      body: { tables: [], replicable: 0, bytes: 0, rows_estimated: 0, unmatched: ["public.*"] },
    },
  });
  renderUi(<Step before />);
  await userEvent.click(await screen.findByRole("button", { name: "Next, with public.*" }));
  const chip = await screen.findByRole("checkbox", { name: "app (1)" });
  expect(screen.queryByLabelText("Include pattern 1, schema")).toBeNull();
  expect(screen.queryByText(/A table pattern matches nothing/)).toBeNull();
  await userEvent.click(chip);
  expect(screen.getByLabelText("Include pattern 1, schema")).toHaveValue("app");
  expect(screen.queryByLabelText("Include pattern 2, schema")).toBeNull();
  await userEvent.click(chip);
  await userEvent.click(screen.getByRole("button", { name: "Add include pattern" }));
  expect(screen.getByLabelText("Include pattern 1, schema")).toHaveValue("public");
});
