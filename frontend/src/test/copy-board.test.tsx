// Copies: what runs comes first, what has finished is a line, and no time is told that nobody knows.
import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import type { Instantiation, TableProgress } from "@/api/types";
import { CopyBoard } from "@/features/instantiation/copy-board";
import { destination } from "./data";
import { expectNoAxeViolations, renderUi } from "./render";

vi.mock("uplot", () => ({
  default: class {
    setData() {}
    setSize() {}
    destroy() {}
  },
}));

const AT = "2026-11-21T00:00:05Z";

function table(name: string, state: TableProgress["state"]): TableProgress {
  return {
    schema: "public",
    table: name,
    state,
    rows_estimated: 1000,
    rows_copied: 500,
    bytes_copied: 5000,
    ranges_total: 2,
    ranges_copied: 1,
    indexes_total: 5,
    indexes_built: 3,
    seconds: 10,
    rows_per_second: 50,
    bytes_per_second: 500,
    seconds_left: 10,
  };
}

function copy(values: Partial<Instantiation>): Instantiation {
  return {
    started_at: AT,
    finished_at: null,
    stage: "rows",
    rows_estimated: 3000,
    rows_copied: 1500,
    bytes_copied: 15_000,
    indexes_total: 15,
    indexes_built: 9,
    rows_per_second: 50,
    bytes_per_second: 500,
    rows_seconds_left: 30,
    index_bytes_left: 1024 ** 3,
    index_bytes_per_second: null,
    indexes_seconds_left: null,
    seconds_left: null,
    curve: [],
    tables: [table("done", "REPLICATING"), table("next", "WAITING"), table("now", "COPYING")],
    ...values,
  };
}

it("puts running tables first, and says what is not known", async () => {
  const copied = destination({ phase: "INSTANTIATING", instantiation: copy({}) });
  renderUi(<CopyBoard destinations={[copied]} finished={false} />);
  const rows = within(screen.getByRole("table", { name: "Initial copy by table" })).getAllByRole("row");
  expect(rows.slice(1).map((row) => row.textContent?.match(/public\.(\w+?)(?=[A-Z])/)?.[1])).toEqual([
    "now",
    "next",
    "done",
  ]);
  expect(screen.getByText(/how fast is not known before the first one is built\./)).toBeVisible();
  await expectNoAxeViolations();
});

it("tells of indexes once all rows are there", () => {
  const tables = [table("done", "COPIED"), table("now", "INDEXING")];
  const copied = destination({
    phase: "INSTANTIATING",
    instantiation: copy({ stage: "indexes", rows_seconds_left: 0, tables }),
  });
  renderUi(<CopyBoard destinations={[copied]} finished={false} />);
  expect(screen.getByText("all rows are there, indexes built: 9 of 15")).toBeVisible();
  expect(screen.getByRole("progressbar", { name: "Copy of public.now" })).toHaveAttribute(
    "aria-valuetext",
    "indexes 3 of 5",
  );
  expect(screen.getByText(/^6 of 15 indexes, constraints and foreign keys are being built/)).toBeVisible();
  expect(screen.queryByText("All rows in")).toBeNull();
});

it("shows the curve from before the page was opened, and the time with indexes and keys in it", () => {
  const measured = { index_bytes_per_second: 1024 ** 2, indexes_seconds_left: 12, seconds_left: 42 };
  const curve = [0, 200, 600].map((rows_copied, second) => ({
    at: `2026-11-21T00:00:0${second}Z`,
    rows_copied,
  }));
  const one = destination({ phase: "INSTANTIATING", instantiation: copy({ ...measured, curve }) });
  renderUi(<CopyBoard destinations={[one]} finished={false} />);
  expect(screen.getByRole("img", { name: /Rate of the copy, now: Copied 300/ })).toBeVisible();
  for (const [label, value] of [
    ["All rows in", "30"],
    ["Indexes in", "12"],
    ["Copy done in", "42"],
  ] as const)
    expect(screen.getByText(label).parentElement?.parentElement).toHaveTextContent(
      new RegExp(`${label}.*${value}`),
    );
});

it("says that a copy is interrupted", () => {
  const one = destination({
    status: "DISABLED",
    phase: "STOPPED",
    state: "PAUSED",
    instantiation: copy({ stage: "indexes" }),
  });
  renderUi(<CopyBoard destinations={[one]} finished={false} />);
  expect(screen.getByText(/The copy is interrupted \(Paused\)/)).toBeVisible();
  expect(screen.queryByText(/are being built/)).toBeNull();
});

it("folds finished copies to a line each, the latest first", async () => {
  const early = destination({
    id: "early",
    database: { id: "d1", name: "early", address: "a" },
    instantiation: copy({ stage: "finished", finished_at: "2026-11-21T00:01:00Z" }),
  });
  const late = destination({
    id: "late",
    database: { id: "d2", name: "late", address: "b" },
    instantiation: copy({ stage: "finished", finished_at: "2026-11-21T00:02:00Z" }),
  });
  renderUi(<CopyBoard destinations={[early, late]} finished />);
  expect(screen.getAllByRole("heading").map((heading) => heading.textContent)).toEqual([
    "Copied tables of late",
    "Copied tables of early",
  ]);
  // A table that was copied again later is in the sum: it is not the initial copy's.
  expect(screen.getAllByText(/^Last copy finished .* rows in all/)).toHaveLength(2);
  expect(screen.queryByRole("table")).toBeNull();
  await userEvent.click(screen.getAllByRole("button", { name: "Show 3 tables" })[0] as HTMLElement);
  expect(screen.getByRole("table", { name: "Initial copy by table" })).toBeVisible();
});
