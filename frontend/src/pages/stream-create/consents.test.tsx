// Consents of the wizard: kept in the draft, shown before the stream is made, and asked for where the API still wants one.
import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { check, database, engine, initialCopy, parallelism, refusedBy, session } from "@/test/data";
import { type Routes, renderAt, stubApi, stubEvents } from "@/test/render";
import { keepDraft } from "./draft";
import { emptyWizard } from "./wizard-state";

const databases = [database("source01", "orders"), database("dest0001", "warehouse")];
const consent = (id: string, title: string) =>
  check({ id, title, detail: `${title}.`, status: "consent", items: [`of ${id}`], consent: `${id}:1` });
const code = consent("code", "Code that runs at the destination");
const leftOut = consent("left_out", "What the copy leaves out");

it("are kept, shown in the review, and asked for where the request is refused", async () => {
  stubEvents();
  const sent: unknown[] = [];
  const routes: Routes = {
    "GET /api/v1/session": { body: session },
    "GET /api/v1/alerts/counts": { body: { firing: 0, critical: 0, unacknowledged: 0, pending: 0 } },
    "GET /api/v1/databases": { body: { items: databases, next_cursor: null } },
    "GET /api/v1/engines": { body: { items: [engine], next_cursor: null } },
    "GET /api/v1/stream-parameters": { body: { parameters: [parallelism, initialCopy] } },
    "POST /api/v1/streams:preview-tables": {
      body: { tables: [], replicable: 1, bytes: 0, rows_estimated: 0, unmatched: [] },
    },
    "POST /api/v1/preflights": { body: { ready: false, checks: [code] } },
    "POST /api/v1/streams": async (request) => {
      const body = await request.json();
      sent.push(body.accept);
      return refusedBy([leftOut]);
    },
  };
  stubApi(routes);
  const state = { ...emptyWizard, sourceId: "source01", destinationIds: ["dest0001"], name: "mine" };
  keepDraft({ state: { ...state, accepted: ["code:1"] }, active: 3 });
  renderAt("/streams/new");
  expect(await screen.findByRole("checkbox", { name: `Accept: ${code.title}` })).toBeChecked();
  await userEvent.click(screen.getByRole("button", { name: "Next" }));
  await userEvent.click(await screen.findByRole("button", { name: "Next" }));
  const review = await screen.findByRole("region", { name: "Step 6 of 6: Review" });
  expect(within(review).getByRole("list", { name: "Accepted" })).toHaveTextContent(`${code.title}of code`);
  const create = screen.getByRole("button", { name: "Create stream" });
  await userEvent.click(create);
  await userEvent.click(await screen.findByRole("checkbox", { name: `Accept: ${leftOut.title}` }));
  expect(within(review).getByRole("list", { name: "Accepted" })).toHaveTextContent(leftOut.title);
  await userEvent.click(create);
  expect(sent).toEqual([["code:1"], ["code:1", "left_out:1"]]);
});
