import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import type { Check, SourceTable, StreamTable, TableRules } from "@/api/types";
import { check, destination, keylessTable, refusedBy, stream } from "@/test/data";
import { expectNoAxeViolations, renderUi, stubApi } from "@/test/render";
import { StreamRules } from "./stream-rules";

const all: TableRules = { include: [{ schema: "public", table: "*" }], exclude: [] };
const log: SourceTable = { ...keylessTable, identified: true, replicable: true, unsupported: [] };
const noTests = {
  scope: "global" as const,
  negative: [{ name: "no_tests", condition: "tag = 'test'", subset: false, on_error: "stop" as const }],
};
const nothing = { scope: "table" as const, schema: "public", table: "orders", positive: [] };
const leftOut = check({
  id: "left_out",
  side: "destination",
  title: "What the copy leaves out",
  status: "consent",
  items: ["comments: public.log"],
  consent: "left_out:1234",
});

/** Refuses with `checks` until those with a consent are accepted; what is sent lands in the list. */
function openEditor(checks: Check[], rules = all) {
  const sent: unknown[] = [];
  const refused = new Set(checks.map(({ consent }) => consent));
  stubApi({
    "POST /api/v1/streams:preview-tables": {
      body: { tables: [log], replicable: 1, bytes: 0, rows_estimated: 0, unmatched: [] },
    },
    "PATCH /api/v1/streams/stream01": async (request) => {
      const body = await request.json();
      sent.push(body);
      for (const consent of body.accept ?? []) refused.delete(consent);
      if (refused.size === 0) return { body: stream() };
      return refusedBy(checks.filter(({ consent }) => refused.has(consent)));
    },
  });
  renderUi(<StreamRules stream={stream({ rules })} mayAct />);
  return { sent, open: () => userEvent.click(screen.getByRole("button", { name: "Edit rules" })) };
}

const save = async () => {
  const button = await screen.findByRole("button", { name: "Save rules" });
  await vi.waitFor(() => expect(button).toBeEnabled());
  await userEvent.click(button);
};

it("lets what the preflight asks for be accepted, as the wizard does", async () => {
  const { sent, open } = openEditor([leftOut]);
  await open();
  await save();
  expect(await screen.findByText("comments: public.log")).toBeVisible();
  expect(screen.getByRole("alert")).toHaveTextContent("Accept the checks that need your consent");
  expect(screen.getByRole("button", { name: "Save rules" })).toBeDisabled();
  await expectNoAxeViolations();
  await userEvent.click(screen.getByRole("checkbox", { name: "Accept: What the copy leaves out" }));
  await save();
  await vi.waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  expect(sent).toEqual([{ rules: all }, { rules: all, accept: ["left_out:1234"] }]);
});

it("can be tried again once a failed check is cured at the database", async () => {
  const { open } = openEditor([check({ id: "table_keys", title: "Keys of tables", status: "failed" })]);
  await open();
  await save();
  expect(await screen.findByRole("alert")).toHaveTextContent("Fix what the failed checks name");
  expect(screen.getByRole("region", { name: "Checks at the source" })).toHaveTextContent("Keys of tables");
  expect(screen.getByRole("button", { name: "Save rules" })).toBeEnabled();
});

it("keeps a consent while other rules are tried, and shows it", async () => {
  const { sent, open } = openEditor([leftOut, check({ id: "other", title: "Other", status: "failed" })]);
  await open();
  await save();
  await userEvent.click(await screen.findByRole("checkbox", { name: "Accept: What the copy leaves out" }));
  await userEvent.type(screen.getByRole("textbox", { name: "Include pattern 1, table" }), "g");
  expect(screen.queryByRole("checkbox", { name: "Accept: What the copy leaves out" })).toBeNull();
  const given = screen.getByRole("list", { name: "Accepted" });
  expect(given).toHaveTextContent("What the copy leaves outcomments: public.log");
  await save();
  expect(sent.at(-1)).toEqual({
    rules: { ...all, include: [{ schema: "public", table: "*g" }] },
    accept: ["left_out:1234"],
  });
});

it("asks again where a check says something else", async () => {
  const more = { ...leftOut, detail: "Other comments.", consent: "left_out:5678" };
  const { open } = openEditor([leftOut, more]);
  await open();
  await save();
  const [first] = await screen.findAllByRole("checkbox", { name: "Accept: What the copy leaves out" });
  if (first) await userEvent.click(first);
  expect(screen.getByRole("button", { name: "Save rules" })).toBeDisabled();
});

it("says what the row rules have decided", async () => {
  const ruled = { ...all, row_rules: [noTests, nothing] };
  const counts = {
    counted_since: "2026-11-21T00:00:01.400000Z",
    tables: [
      {
        schema: "public",
        table: "orders",
        scopes: ["table" as const, "global" as const],
        passed: 120,
        dropped: 34,
        became_inserts: 5,
        became_deletes: 6,
        by_policy: 7,
        at_source: ["INSERT"],
        at_engine_because: "an update may bring a row into the subset, or take it out",
      },
      {
        schema: "public",
        table: "visits",
        scopes: ["table" as const],
        passed: 1,
        dropped: 0,
        became_inserts: 0,
        became_deletes: 0,
        by_policy: 0,
        at_source: [],
        at_engine_because: "the stream's slot uses pgoutput",
      },
    ],
  };
  const { unmount } = renderUi(<StreamRules stream={stream({ rules: ruled, rule_counts: counts })} mayAct />);
  const cells = screen.getAllByRole("cell").map(({ textContent }) => textContent);
  expect(cells).toEqual([
    ...["public.orders", "the table, all tables", "120", "34", "5", "6", "7"],
    "At the source: inserts; the rest at the engine, because an update may bring a row into the subset, or take it out",
    ...["public.visits", "the table", "1", "0", "0", "0", "0"],
    "At the engine, because the stream's slot uses pgoutput",
  ]);
  expect(
    screen.getByText(/^Counted since the capture started.*the source rolls back.*not sent/),
  ).toBeVisible();
  await expectNoAxeViolations();
  unmount();
  renderUi(<StreamRules stream={stream({ rules: ruled })} mayAct />);
  expect(screen.queryByRole("table")).toBeNull();
  expect(screen.getByText(/passed and dropped changes while changes are captured/)).toBeVisible();
});

it("shows the rules in force for a table, and where each comes from", async () => {
  const small = {
    name: "small",
    operations: ["INSERT" as const],
    condition: null,
    subset: false,
    on_error: "stop" as const,
  };
  const ofSchema = { scope: "schema" as const, schema: "public", positive: [small] };
  const north = {
    name: "north",
    operations: null,
    condition: "region = 'north'",
    subset: true,
    on_error: "stop" as const,
  };
  const ruled = { ...all, row_rules: [noTests, { ...nothing, positive: [north] }] };
  const destinations = [destination({ row_rules: [ofSchema] })];
  renderUi(<StreamRules stream={stream({ rules: ruled, destinations })} mayAct />);
  expect(screen.getByText("all tables")).toBeVisible();
  await userEvent.click(screen.getByRole("combobox", { name: "Rules in force" }));
  await userEvent.click(await screen.findByRole("option", { name: "public.orders" }));
  const cells = within(await screen.findByRole("table")).getAllByRole("cell");
  expect(cells.map(({ textContent }) => textContent)).toEqual([
    ...["north", "the stream", "the table", "subset", "all", "region = 'north'", "Stop the stream"],
    ...["no_tests", "the stream", "all tables", "negative", "all", "tag = 'test'", "Stop the stream"],
    ...["small", destination().database.name, "its schema", "positive", "INSERT", "always", "–"],
  ]);
  await expectNoAxeViolations();
});

it("says where nothing passes, or all does", async () => {
  const other = { schema: "public", table: "customers" };
  const tables = [...stream().tables, { ...(stream().tables[0] as StreamTable), ...other }];
  renderUi(<StreamRules stream={stream({ rules: { ...all, row_rules: [nothing] }, tables })} mayAct />);
  const choose = async (table: string) => {
    await userEvent.click(screen.getByRole("combobox", { name: "Rules in force" }));
    await userEvent.click(await screen.findByRole("option", { name: table }));
  };
  await choose("public.orders");
  expect(await screen.findByText("Nothing passes the rules of the stream.")).toBeVisible();
  await choose("public.customers");
  expect(await screen.findByText(/^No rule applies to public.customers/)).toBeVisible();
});

it("has no counts where no table has rules", () => {
  renderUi(<StreamRules stream={stream({ rules: all })} mayAct />);
  expect(screen.queryByText(/counted/i)).toBeNull();
});

it("sends a masking key, and shows it nowhere", async () => {
  const hash = {
    type: "mask_column" as const,
    column: "note",
    with: "hash" as const,
    keep_first: 0,
    keep_last: 0,
  };
  const hashed = { ...all, transformations: [{ schema: "public", table: "log", steps: [hash] }] };
  const { sent, open } = openEditor([], hashed);
  await open();
  const key = "a key of at least 32 characters.";
  const field = await screen.findByLabelText("Masking key");
  await userEvent.type(field, "short");
  expect(screen.getByRole("button", { name: "Save rules" })).toBeDisabled();
  await userEvent.clear(field);
  await userEvent.type(field, key);
  expect(document.body).toHaveTextContent(/"mask_key": ?"\*{8}"/);
  expect(document.body).not.toHaveTextContent(key);
  await save();
  await vi.waitFor(() => expect(sent).toEqual([{ rules: hashed, mask_key: key }]));
});
