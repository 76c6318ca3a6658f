import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import { expectNoAxeViolations, renderUi } from "@/test/render";
import { type Column, DataTable, sortRows } from "./data-table";

interface Row {
  name: string;
  rate: number | null;
}

const rows: Row[] = [
  { name: "b", rate: null },
  { name: "a10", rate: 5 },
  { name: "a2", rate: 70 },
];
const columns: Column<Row>[] = [
  { key: "name", header: "Name", sortBy: (row) => row.name, cell: (row) => row.name },
  { key: "rate", header: "Rate", sortBy: (row) => row.rate, cell: (row) => row.rate ?? "–" },
];
const names = (sorted: Row[]) => sorted.map((row) => row.name);

describe("sortRows", () => {
  it("puts unknown values last in both directions", () => {
    expect(names(sortRows(rows, columns, { key: "rate", descending: false }))).toEqual(["a10", "a2", "b"]);
    expect(names(sortRows(rows, columns, { key: "rate", descending: true }))).toEqual(["a2", "a10", "b"]);
  });

  it("sorts numbers in names as numbers", () => {
    expect(names(sortRows(rows, columns, { key: "name", descending: false }))).toEqual(["a2", "a10", "b"]);
  });
});

describe("DataTable", () => {
  it("sorts by a click on the header and says so", async () => {
    renderUi(<DataTable label="Things" columns={columns} rows={rows} rowKey={(row) => row.name} />);
    const table = screen.getByRole("table", { name: "Things" });
    await userEvent.click(within(table).getByRole("button", { name: "Rate" }));
    expect(within(table).getByRole("columnheader", { name: "Rate" })).toHaveAttribute(
      "aria-sort",
      "ascending",
    );
    const first = within(table).getAllByRole("row")[1];
    expect(first).toHaveTextContent("a10");
    await expectNoAxeViolations();
  });

  it("is a list of cards on a phone, where a card has a name", async () => {
    const wide = window.matchMedia;
    vi.stubGlobal("matchMedia", (query: string) => ({
      ...wide(query),
      matches: query.includes("max-width"),
    }));
    renderUi(
      <DataTable
        label="Things"
        columns={columns}
        rows={rows}
        rowKey={(row) => row.name}
        initialSort={{ key: "rate", descending: true }}
        cardName={(row) => `Thing ${row.name}`}
      />,
    );
    const cards = within(screen.getByRole("list", { name: "Things" })).getAllByRole("listitem");
    expect(cards.map((card) => card.getAttribute("aria-label"))).toEqual([
      "Thing a2",
      "Thing a10",
      "Thing b",
    ]);
    expect(cards[0]).toHaveTextContent("Namea2Rate70");
    expect(screen.queryByRole("table")).toBeNull();
    await expectNoAxeViolations();
    vi.stubGlobal("matchMedia", wide);
  });

  it("shows its empty face", () => {
    renderUi(
      <DataTable
        label="Things"
        columns={columns}
        rows={[]}
        rowKey={(row) => row.name}
        empty="Nothing here."
      />,
    );
    expect(screen.getByText("Nothing here.")).toBeVisible();
  });
});
