import { screen } from "@testing-library/react";
import type { ReactNode } from "react";
import { expect, it, vi } from "vitest";
import type { Instantiation } from "@/api/types";
import { destination, operation, stream } from "@/test/data";
import { renderUi, stubApi } from "@/test/render";
import { StreamOperations } from "./stream-operations";

vi.mock("@/ui/anchor-link", () => ({ AnchorLink: ({ children }: { children: ReactNode }) => children }));

const refused = (finished: number) =>
  operation({
    kind: "stream.retry",
    state: "failed",
    error: {
      code: "table_trouble",
      title: "A table was replaced",
      message: "public.t_7",
      cure: "Copy it again.",
      detail: null,
    },
    finished_at: new Date(finished).toISOString(),
  });

it("tells of a copy in the figures of the copy's own board", async () => {
  const progress = { done: 11_000, total: 90_000, unit: "rows" as const };
  const running = operation({ kind: "stream.create", state: "running", progress });
  stubApi({ "GET /api/v1/operations": { body: { items: [running], next_cursor: null } } });
  const table = { schema: "public", table: "orders", rows_copied: 12_345, rows_estimated: 100_000 };
  const copy = { stage: "rows", tables: [table] } as unknown as Instantiation;
  renderUi(<StreamOperations stream={stream({ destinations: [destination({ instantiation: copy })] })} />);
  expect(await screen.findByText(/^Create stream: 12.345 of about 100.000 rows, 12.%$/)).toBeVisible();
});

it("names the table that is copied again", async () => {
  const progress = { done: 0, total: null, unit: "rows" as const };
  const running = operation({ kind: "table.copy", state: "running", progress });
  const about = { ...running.target, destination_id: "warehouse", table: "public.orders" };
  const items = [{ ...running, target: about }];
  stubApi({ "GET /api/v1/operations": { body: { items, next_cursor: null } } });
  renderUi(<StreamOperations stream={stream()} />);
  expect(await screen.findByText("Copy table again: public.orders")).toBeVisible();
});

it("shows what came of the last thing that was asked for, for a while", async () => {
  stubApi({ "GET /api/v1/operations": { body: { items: [refused(Date.now())], next_cursor: null } } });
  renderUi(<StreamOperations stream={stream()} />);
  expect(await screen.findByText("Retry stream failed: A table was replaced")).toBeVisible();
  expect(screen.getByText(/Copy it again/)).toBeVisible();
});

it("calls nothing failed that has succeeded after an error", async () => {
  const running = operation({ id: "other", kind: "stream.create", state: "running" });
  const items = [{ ...refused(Date.now()), state: "succeeded" as const }, running];
  stubApi({ "GET /api/v1/operations": { body: { items, next_cursor: null } } });
  const { container } = renderUi(<StreamOperations stream={stream()} />);
  await screen.findByText(/Create stream/);
  expect(container).not.toHaveTextContent("failed");
});
