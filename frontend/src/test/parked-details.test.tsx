import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { CHANGES, contents, error, listed, QUEUE, renderQueue } from "./parked-data";
import { stubApi } from "./render";

it("refuses to undo what somebody else has decided meanwhile, and says who", async () => {
  const etags: (string | null)[] = [];
  stubApi({
    [QUEUE]: listed([error]),
    [`${QUEUE}/4`]: () => ({ body: { ...contents, error: { ...error, etag: `"e${etags.length}"` } } }),
    [`PUT ${CHANGES}/1`]: (request) => {
      etags.push(request.headers.get("If-Match"));
      return {
        status: 412,
        body: {
          type: "urn:thalweg:problem:stale_resource",
          title: "Somebody else has changed it in the meantime",
          status: 412,
          detail: "ann has decided about its changes since you read it: change 1 was edited at 10:42:07 UTC.",
          code: "stale_resource",
          errors: [],
        },
      };
    },
  });
  renderQueue();
  await userEvent.click(await screen.findByRole("button", { name: "Open transaction 700" }));
  await userEvent.click(await screen.findByRole("button", { name: "Leave out change 1" }));
  const dialog = await screen.findByRole("dialog", { name: "Leave out change 1: UPDATE public.orders" });
  await userEvent.type(within(dialog).getByLabelText(/Reason/), "a duplicate");
  await userEvent.click(within(dialog).getByRole("button", { name: "Leave out" }));
  expect(await within(dialog).findByRole("alert")).toHaveTextContent("ann has decided about its changes");
  await userEvent.click(within(dialog).getByRole("button", { name: "Leave out" }));
  await waitFor(() => expect(etags).toEqual(['"e0"', '"e0"']));
});

it("opens a transaction at the change at which it failed, and reads the rest page by page", async () => {
  const asked: (string | null)[] = [];
  const [update] = contents.changes;
  stubApi({
    [QUEUE]: listed([{ ...error, failed_change: 907, lcrs: 2000 }]),
    [`${QUEUE}/4`]: (request) => {
      const after = Number(new URL(request.url).searchParams.get("after"));
      asked.push(String(after));
      const numbers = Array.from({ length: 10 }, (_, at) => after + 1 + at);
      return {
        body: {
          ...contents,
          error: { ...error, failed_change: 907 },
          changes_total: 2000,
          changes: numbers.map((number) => ({ ...update, number, columns: [] })),
          next_after: after + 10,
        },
      };
    },
  });
  renderQueue();
  expect(await screen.findByText(/at change 907/)).toBeVisible();
  await userEvent.click(await screen.findByRole("button", { name: "Open transaction 700" }));
  const dialog = await screen.findByRole("dialog", { name: "Transaction 700" });
  expect(await within(dialog).findByText("The transaction failed here")).toBeVisible();
  expect(within(dialog).getByText("907. UPDATE public.orders")).toBeVisible();
  expect(dialog).toHaveTextContent(/2.000 changes. 902 to 911 are shown/);
  await userEvent.click(within(dialog).getByRole("button", { name: "Show more changes" }));
  expect(await within(dialog).findByText("921. UPDATE public.orders")).toBeVisible();
  expect(within(dialog).getAllByText("The transaction failed here")).toHaveLength(1);
  await userEvent.click(within(dialog).getByRole("button", { name: "Show from the first change" }));
  expect(await within(dialog).findByText("1. UPDATE public.orders")).toBeVisible();
  await userEvent.click(within(dialog).getByRole("button", { name: "Go to change 907, which failed" }));
  expect(await within(dialog).findByText("The transaction failed here")).toBeVisible();
  expect(asked.slice(0, 3)).toEqual(["901", "911", "0"]);
});

it("unfolds what waits behind a transaction", async () => {
  const dependant = (id: number, parent: number, behind: number[]) => ({
    ...error,
    id,
    xid: 700 + id,
    code: "parked_behind",
    parent,
    behind,
    behind_total: behind.length,
  });
  stubApi({
    [QUEUE]: listed([error], { total: 4 }),
    [`${QUEUE}/4/dependants`]: (request) => {
      const second = new URL(request.url).searchParams.get("cursor") === "next";
      return {
        body: {
          dependants: second
            ? [dependant(8, 7, [7])]
            : [dependant(6, 4, [4]), { ...dependant(7, 6, [3, 6]), behind_total: 12 }],
          total: 3,
          behind: [],
          behind_total: 0,
          next_cursor: second ? null : "next",
        },
      };
    },
  });
  renderQueue();
  const unfold = await screen.findByRole("button", { name: "Behind transaction 700" });
  expect(unfold).toHaveAttribute("aria-expanded", "false");
  await userEvent.click(unfold);
  const tree = await screen.findByRole("list", { name: "Transactions behind 4" });
  expect(screen.getByText(/3 transactions behind 4/)).toBeVisible();
  const [first, second] = within(tree).getAllByRole("listitem");
  expect(first).toHaveTextContent("behind 4.");
  expect(second).toHaveTextContent("behind 3, 6 and 10 more.");
  expect(second).toHaveStyle({ paddingLeft: "20px" });
  await userEvent.click(screen.getByRole("button", { name: "Show more behind 4" }));
  await waitFor(() => expect(within(tree).getAllByRole("listitem")).toHaveLength(3));
  expect(within(tree).getAllByRole("listitem")[2]).toHaveStyle({ paddingLeft: "40px" });
  await userEvent.click(unfold);
  expect(screen.queryByRole("list", { name: "Transactions behind 4" })).toBeNull();
});
