import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import type { ParkedTransaction } from "@/api/types";
import { ConfirmDecision } from "@/features/error-queue/confirm-decision";
import { renderUi } from "./render";

const error: ParkedTransaction = {
  id: 4,
  commit_lsn: "0/1",
  xid: 700,
  lcrs: 2,
  tables: ["public.orders"],
  code: "apply_conflict",
  message: "duplicate key",
  sqlstate: "23505",
  parked_at: "2026-11-21T00:00:05Z",
};

it("discards only with a reason, and hands it over", async () => {
  const confirmed: (string | null)[] = [];
  renderUi(
    <ConfirmDecision
      error={error}
      discards
      path="/errors"
      onClose={() => {}}
      onConfirm={(reason) => confirmed.push(reason)}
    />,
  );
  const dialog = await screen.findByRole("dialog", { name: "Discard transaction 700" });
  const discard = within(dialog).getByRole("button", { name: "Discard" });
  expect(discard).toBeDisabled();
  await userEvent.type(within(dialog).getByLabelText(/Reason/), " already there ");
  await userEvent.click(discard);
  expect(confirmed).toEqual(["already there"]);
});

it("executes after a question", async () => {
  const confirmed: (string | null)[] = [];
  renderUi(
    <ConfirmDecision
      error={error}
      discards={false}
      path="/errors"
      onClose={() => {}}
      onConfirm={(reason) => confirmed.push(reason)}
    />,
  );
  const dialog = await screen.findByRole("dialog", { name: "Execute transaction 700" });
  await userEvent.click(within(dialog).getByRole("button", { name: "Execute" }));
  expect(confirmed).toEqual([null]);
});
