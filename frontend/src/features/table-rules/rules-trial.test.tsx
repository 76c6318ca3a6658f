import { cleanup, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { JudgedChange, ScopedRules } from "@/api/types";
import { expectNoAxeViolations, type Routes, renderUi, stubApi } from "@/test/render";
import { RowRulesEditor } from "./row-rules-editor";
import { triedChanges } from "./tried-changes";

const own: ScopedRules = {
  scope: "table",
  schema: "public",
  table: "orders",
  positive: [{ name: "north", condition: "region = 'north'", subset: true, on_error: "stop" as const }],
  negative: [{ name: "no_tests", condition: "1 / id > 0", subset: false, on_error: "stop" as const }],
};
const columns = ["region", "id"].map((name) => ({ name, type: "text" }));
const TRY = "POST /api/v1/streams:test-rules";

function judged(
  change: Partial<JudgedChange>,
  negative: string,
  positive: string,
  before = null as string | null,
  counts_as = null as string | null,
) {
  return {
    operation: "INSERT",
    old: null,
    new: { id: "1", region: "north" },
    verdict: "PASSED",
    error: null,
    origin: "TABLE",
    old_not_sent: [],
    new_not_sent: [],
    hidden: [],
    tag: null,
    commit_time: null,
    rules: [
      {
        set: "negative",
        rule: "no_tests",
        scope: "global" as const,
        outcome: negative,
        before: null,
        counts_as,
      },
      { set: "positive", rule: "north", scope: "table" as const, outcome: positive, before, counts_as },
    ],
    ...change,
  };
}

function edit(routes: Routes, stream: { id: string; name: string } | null = null) {
  const requests = stubApi({
    "GET /api/v1/databases/source01/columns": { body: { columns } },
    ...routes,
  });
  renderUi(
    <RowRulesEditor
      sourceId="source01"
      captureEngineId={null}
      stream={stream}
      place={own}
      rules={{ include: [{ schema: "public", table: "*" }], row_rules: [own] }}
      tables={[]}
      onSave={() => {}}
      onClose={() => {}}
    />,
  );
  return requests;
}

const box = (name: string) => screen.getByRole("textbox", { name });
const press = (name: string) => userEvent.click(screen.getByRole("button", { name }));

async function paste(field: HTMLElement, text: string) {
  await userEvent.clear(field);
  await userEvent.click(field);
  await userEvent.paste(text);
}

describe("trying rules", () => {
  it("shows what each rule makes of rows and of changes, and what becomes of them", async () => {
    const moved = { operation: "UPDATE", old: { id: 7, region: "south" }, new: { id: 7, region: "north" } };
    const requests = edit({
      [TRY]: {
        body: {
          problems: [],
          recent_end: null,
          changes: [
            judged(
              {
                operation: "UPDATE",
                old: { id: "7", region: "south" },
                new: { id: "7", region: null },
                verdict: "BECOMES INSERT",
              },
              "FALSE",
              "TRUE",
              "FALSE",
            ),
            judged({}, "FALSE", "TRUE"),
            judged({ verdict: "DROPPED" }, "FALSE", "NULL"),
            judged(
              {
                verdict: "STOPS THE STREAM",
                error: { code: "rule_failed", message: "division by zero", sqlstate: "22012" },
              },
              "FAILED",
              "FALSE",
            ),
            judged({ verdict: "BECOMES DELETE" }, "FAILED", "FALSE", "UNDECIDABLE", "TRUE"),
          ],
        },
      },
    });
    await paste(box("Rows of the table"), "3");
    await paste(box("Changes"), JSON.stringify([moved]));
    await press("Try");
    const table = within(await screen.findByRole("table", { name: "Verdicts" }));
    const rows = table.getAllByRole("row").map((row) => row.textContent);
    expect(rows[0]).toBe("Changeno_tests (all tables)northVerdict");
    expect(rows[1]).toBe(
      "UPDATEold: region=south, id=7new: region=NULL, id=7falsefalse before, true afterBecomes an insert",
    );
    expect(rows[2]).toBe("INSERTregion=north, id=1falsetruePasses");
    expect(rows[3]).toBe("INSERTregion=north, id=1falsenullDropped");
    expect(rows[4]).toContain("failedfalseStops the streamdivision by zero (rule_failed)");
    expect(rows[5]).toContain(
      "failed, counted as trueundecidable, counted as true before, false afterBecomes a delete",
    );
    expect(
      screen.getByText(
        "Becomes an insert: 1, Passes: 1, Dropped: 1, Stops the stream: 1, Becomes a delete: 1",
      ),
    ).toBeVisible();
    const asked = await requests.find(({ method }) => method === "POST")?.json();
    expect(asked).toEqual({
      source_id: "source01",
      capture_engine_id: null,
      table: { schema: "public", table: "orders" },
      row_rules: [own],
      sample: 3,
      changes: [moved],
    });
    await expectNoAxeViolations();
  });

  it("marks what does not fit at its place, and forgets it with the text", async () => {
    const finding = {
      schema: "public",
      table: "orders",
      rule: "north",
      scope: "table" as const,
      code: "rule_refused",
      message: "there is no such column",
      cure: "Correct the rule.",
      line: 1,
      column: 1,
      offset: 0,
      certain: true,
    };
    edit({ [TRY]: { body: { problems: [finding], changes: [], recent_end: null } } });
    await press("Try");
    const passing = within(screen.getByRole("group", { name: "Positive rule" }));
    const alert = await passing.findByRole("alert");
    expect(alert).toHaveTextContent("Line 1, column 1: there is no such column");
    expect(alert.querySelector("mark")).toHaveTextContent(/^region$/);
    expect(screen.getByText(/^Nothing was judged/)).toBeVisible();
    await userEvent.clear(passing.getByRole("textbox", { name: "Condition" }));
    expect(screen.queryByText(/^Nothing was judged/)).toBeNull();
    expect(passing.queryByRole("alert")).toBeNull();
  });

  it("says so where the table is empty, and where the engine fails", async () => {
    let fails = false;
    edit({
      [TRY]: () =>
        fails
          ? {
              status: 502,
              body: { title: "An engine does not answer", status: 502, code: "engine_unreachable" },
            }
          : { body: { problems: [], changes: [], recent_end: null } },
    });
    await press("Try");
    expect(await screen.findByText(/the table has no rows/)).toBeVisible();
    fails = true;
    await press("Try");
    expect(await screen.findByRole("alert")).toHaveTextContent("An engine does not answer");
    expect(screen.queryByText(/the table has no rows/)).toBeNull();
  });

  it("judges the next changes of a stream, and says what they do not show", async () => {
    const captured = {
      operation: "UPDATE",
      origin: "STREAM",
      old: null,
      new: { id: "7" },
      old_not_sent: ["region", "id"],
      new_not_sent: ["note"],
      hidden: ["region"],
    };
    const keyed = { ...captured, operation: "DELETE", old: { id: "8" }, new: null, old_not_sent: ["note"] };
    const requests = edit(
      {
        [TRY]: {
          body: {
            problems: [],
            recent_end: "TIME",
            changes: [judged(captured, "FALSE", "TRUE"), judged(keyed, "FALSE", "TRUE")],
          },
        },
      },
      { id: "orders7f3a", name: "orders" },
    );
    await paste(box("Rows of the table"), "0");
    await paste(box("Next changes of the stream"), "30");
    await press("Try");
    const table = within(await screen.findByRole("table", { name: "Verdicts" }));
    const rows = table.getAllByRole("row").map((row) => row.textContent);
    expect(rows[1]).toContain("UPDATE, capturedold: not sentnew: id=7, region hidden, note not sent");
    expect(rows[2]).toContain("DELETE, capturedid=8, region hidden, note not sent");
    expect(screen.getByText("No more changes of the table came within 5 seconds.")).toBeVisible();
    const asked = await requests.find(({ method }) => method === "POST")?.json();
    expect([asked.sample, asked.recent]).toEqual([0, { stream_id: "orders7f3a", limit: 30, wait_ms: 5000 }]);
    await expectNoAxeViolations();
  });

  it("says so where no change of the stream came, and asks for none where there is no stream", async () => {
    const answer = { problems: [], changes: [], recent_end: "TIME" };
    const requests = edit({ [TRY]: { body: answer } }, { id: "orders7f3a", name: "orders" });
    await press("Try");
    expect(await screen.findByText(/^No change of the table came within 5 seconds/)).toBeVisible();
    expect(screen.queryByText(/the table has no rows/)).toBeNull();
    // Nobody has asked for any.
    expect(await requests.find(({ method }) => method === "POST")?.json()).not.toHaveProperty("recent");
    cleanup();
    edit({});
    expect(screen.queryByRole("textbox", { name: "Next changes of the stream" })).toBeNull();
  });

  it("sends no changes that are no list", async () => {
    edit({});
    await paste(box("Changes"), "{}");
    expect(screen.getByText("Write a list: [ ... ].")).toBeVisible();
    expect(screen.getByRole("button", { name: "Try" })).toBeDisabled();
    expect(triedChanges("[{]").fault).toMatch(/^This is not JSON: /);
    expect(triedChanges('[{"new": {"id": 9007199254740993}}]').fault).toMatch(/in quotes/);
    expect(triedChanges('[{"new": {"id": "9007199254740993"}}]').changes).toHaveLength(1);
    expect(triedChanges(" ")).toEqual({ changes: [] });
  });
});

describe("the field of a condition", () => {
  const negative = () => within(screen.getByRole("group", { name: "Negative rule" }));
  const options = () => screen.queryAllByRole("option").map((option) => option.textContent);

  it("offers columns while a word is typed, and writes the one that is chosen by keyboard", async () => {
    edit({});
    const field = negative().getByRole("textbox", { name: "Condition" });
    await paste(field, "new.");
    await waitFor(() => expect(options()).toEqual(["regiontext", "idtext"]));
    await userEvent.keyboard("r");
    expect(options()).toEqual(["regiontext"]);
    await userEvent.keyboard("{ArrowDown}{Enter}");
    expect(field).toHaveValue("new.region");
    expect(options()).toEqual([]);
    await userEvent.paste(" = 're");
    expect(options()).toEqual([]);
    await userEvent.keyboard("'{Enter}");
    expect(field).toHaveValue("new.region = 're'\n");
  });

  it("offers functions to the mouse, and everything to Ctrl and the space bar", async () => {
    edit({});
    const field = negative().getByRole("textbox", { name: "Condition" });
    await paste(field, "1 = low");
    expect(options()).toEqual(["lower(function"]);
    await userEvent.click(screen.getByRole("option", { name: /lower/ }));
    expect(field).toHaveValue("1 = lower(");
    await userEvent.keyboard("{Control>} {/Control}");
    expect(options().slice(0, 3)).toEqual(["regiontext", "idtext", "old.the row before"]);
    await userEvent.keyboard("{Escape}");
    expect(options()).toEqual([]);
    expect(field).toHaveFocus();
  });

  it("names the chosen suggestion until more is typed, and says how many there are", async () => {
    edit({});
    const field = negative().getByRole("textbox", { name: "Condition" });
    await paste(field, "i");
    await screen.findByText("7 suggestions");
    expect(field).toHaveAttribute("aria-activedescendant", "");
    await userEvent.keyboard("{ArrowDown}");
    expect(field).toHaveAttribute("aria-activedescendant", screen.getAllByRole("option")[0]?.id);
    await userEvent.keyboard("s");
    expect(options()).toEqual(["ISNULLkeyword", "isfinite(function"]);
    expect(field).toHaveAttribute("aria-activedescendant", "");
    await userEvent.keyboard("{Enter}");
    expect(field).toHaveValue("is\n");
  });

  it("offers no old and new rows to a rule of a subset", async () => {
    edit({});
    const passing = within(screen.getByRole("group", { name: "Positive rule" }));
    const field = passing.getByRole("textbox", { name: "Condition" });
    await paste(field, "o");
    await waitFor(() =>
      expect(options()).toEqual([
        "operationattribute",
        "ORkeyword",
        "octet_length(function",
        "overlay(function",
      ]),
    );
    await expectNoAxeViolations();
  });

  it("says why there are no columns to offer", async () => {
    edit({
      "GET /api/v1/databases/source01/columns": {
        status: 422,
        body: { title: "The database cannot be reached", status: 422, code: "database_unreachable" },
      },
    });
    expect(await screen.findByText("No columns to offer")).toBeVisible();
  });
});
