import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { check, refusedBy, stream } from "@/test/data";
import { expectNoAxeViolations, renderUi, stubApi } from "@/test/render";
import { StreamCapture } from "./stream-capture";

it("changes to log mining once it is said what that does and costs", async () => {
  const sent: unknown[] = [];
  stubApi({
    "PATCH /api/v1/streams/stream01": async (request) => {
      sent.push(await request.json());
      return { body: stream({ capture_kind: "wal" }) };
    },
  });
  renderUi(<StreamCapture stream={stream()} mayAct />);
  expect(screen.getByText("Captured by logical decoding at the source.")).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Change to log mining" }));
  const dialog = await screen.findByRole("dialog", { name: "Change to log mining" });
  expect(dialog).toHaveTextContent("Nothing is copied again");
  expect(dialog).toHaveTextContent("orders keeps its WAL for both slots");
  expect(dialog).toHaveTextContent("A failover of the source is not followed");
  await expectNoAxeViolations();
  await userEvent.click(within(dialog).getByRole("button", { name: "Change to log mining" }));
  expect(sent).toEqual([{ capture_kind: "wal" }]);
});

it("shows why the source cannot be mined", async () => {
  const types = check({
    id: "mined_types",
    side: "source",
    title: "Types that can be mined",
    status: "failed",
  });
  stubApi({ "PATCH /api/v1/streams/stream01": () => refusedBy([types]) });
  renderUi(<StreamCapture stream={stream()} mayAct />);
  await userEvent.click(screen.getByRole("button", { name: "Change to log mining" }));
  const dialog = await screen.findByRole("dialog");
  await userEvent.click(within(dialog).getByRole("button", { name: "Change to log mining" }));
  expect(await within(dialog).findByText(/Types that can be mined/)).toBeVisible();
});

const change = { to: "wal" as const, position: "0/5A3C1F8", waits_for: ["warehouse"] };

it("tells what a change waits for, and takes it back", () => {
  renderUi(<StreamCapture stream={stream({ capture_kind: "wal", kind_change: change })} mayAct={false} />);
  expect(screen.getByText("Captured by logical decoding at the source.")).toBeVisible();
  expect(screen.getByText(/^Changes to log mining/)).toHaveTextContent(
    "Changes to log mining at 0/5A3C1F8. It waits until warehouse has everything from before that.",
  );
  expect(screen.getByRole("button", { name: "Stay with logical decoding" })).toBeDisabled();
});

it("tells that a change is being prepared", () => {
  const preparing = { ...change, position: null, waits_for: [] };
  renderUi(<StreamCapture stream={stream({ capture_kind: "wal", kind_change: preparing })} mayAct />);
  expect(screen.getByText(/which waits for transactions that run at the source/)).toBeVisible();
});
