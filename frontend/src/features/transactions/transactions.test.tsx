import { screen } from "@testing-library/react";
import type { ReactNode } from "react";
import { expect, it, vi } from "vitest";
import type { StreamDestination } from "@/api/types";
import { destination, stream } from "@/test/data";
import { renderUi } from "@/test/render";
import { Transactions } from "./transactions";

vi.mock("@/ui/anchor-link", () => ({ AnchorLink: ({ children }: { children: ReactNode }) => children }));

const nothing = { open: 0, waiting: 0, executing: 0, queued_lcrs: 0, transactions: [] };
const show = (values: Partial<StreamDestination>) =>
  renderUi(
    <Transactions
      now={nothing as unknown as Parameters<typeof Transactions>[0]["now"]}
      stream={stream({ destinations: [destination(values)] })}
    />,
  );

it("offers its choices one below the other on a phone, where a row of them would be cut off", () => {
  const wide = window.matchMedia;
  vi.stubGlobal("matchMedia", (query: string) => ({ ...wide(query), matches: query.includes("max-width") }));
  show({});
  const choices = screen.getByRole("radiogroup", { name: "Transactions to show" });
  expect(choices).toHaveAttribute("data-orientation", "vertical");
  vi.stubGlobal("matchMedia", wide);
});

it("calls all committed only where it is applied", () => {
  const { unmount } = show({});
  expect(
    screen.getByText("Every transaction received so far is committed at the destination."),
  ).toBeVisible();
  unmount();
  const { unmount: remove } = show({ error_queue_transactions: null });
  expect(screen.getByText(/except those that are parked/)).toHaveTextContent(
    "an unknown number of transactions in the error queue of warehouse",
  );
  remove();
  const parked_at = new Date(Date.now() - 3 * 3_600_000).toISOString();
  const { unmount: again } = show({ error_queue_transactions: 2, error_queue_oldest_at: parked_at });
  expect(screen.getByText(/except those that are parked/)).toHaveTextContent(
    "2 transactions in the error queue of warehouse (oldest 3 h ago).",
  );
  again();
  show({ status: "DISABLED", phase: "STOPPED", state: "PAUSED" });
  expect(screen.getByText("Transactions waiting for warehouse (Paused) are not listed here.")).toBeVisible();
  expect(screen.queryByText(/is committed/)).toBeNull();
});
