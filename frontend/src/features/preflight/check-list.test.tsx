import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { describe, expect, it } from "vitest";
import type { Check } from "@/api/types";
import { expectNoAxeViolations, renderUi } from "@/test/render";
import { CheckList } from "./check-list";
import { isReady, summary } from "./checks";

const plain = { items: [], sql_at: null, consent: null, accepted: false };
const leftOut: Check = {
  ...plain,
  id: "left_out",
  side: "destination",
  database_id: null,
  title: "What the copy leaves out",
  status: "consent",
  detail: "The source's tables have comments.",
  items: ["comments: public.orders"],
  cure: "Make it yourself.",
  sql: null,
  consent: "left_out:1234",
};
const checks: Check[] = [
  {
    ...plain,
    id: "slots",
    side: "source",
    database_id: null,
    title: "A slot is free",
    status: "ok",
    detail: "1 of 10.",
    cure: null,
    sql: null,
  },
  {
    ...plain,
    id: "wal_level",
    side: "source",
    database_id: null,
    title: "wal_level is logical",
    status: "failed",
    detail: "wal_level is replica.",
    cure: "Set it and restart.",
    sql: "ALTER SYSTEM SET wal_level = 'logical';",
    sql_at: "shop (db:5432/shop)",
  },
  {
    ...plain,
    id: "schema",
    side: "destination",
    database_id: null,
    title: "May create",
    status: "warning",
    detail: "d",
    cure: "c",
    sql: null,
  },
];

describe("CheckList", () => {
  it("puts what failed first, in words, with its cure and SQL to copy", async () => {
    renderUi(<CheckList checks={checks} />);
    const source = screen.getByRole("region", { name: "Checks at the source" });
    const [first, second] = within(source).getAllByRole("listitem");
    expect(first).toHaveTextContent("Failed: wal_level is logical");
    expect(first).toHaveTextContent("Cure: Set it and restart.");
    expect(first).toHaveTextContent("SQL to run at the source shop (db:5432/shop)");
    expect(first).toHaveTextContent("ALTER SYSTEM SET wal_level = 'logical';");
    expect(second).toHaveTextContent("Passed: A slot is free");
    await expectNoAxeViolations();
  });

  it("lists what must be accepted, with a box that says so", async () => {
    function Page() {
      const [accepted, setAccepted] = useState<string[]>([]);
      return (
        <>
          <CheckList checks={[leftOut]} consents={{ accepted, onChange: setAccepted }} />
          <output>{isReady([leftOut], accepted) ? "ready" : "not ready"}</output>
        </>
      );
    }
    renderUi(<Page />);
    expect(screen.getByText("comments: public.orders")).toBeVisible();
    expect(screen.getByText("not ready")).toBeVisible();
    await userEvent.click(screen.getByRole("checkbox", { name: /Accept: What the copy leaves out/ }));
    expect(screen.getByText("ready")).toBeVisible();
    expect(isReady(checks, [])).toBe(false);
    await expectNoAxeViolations();
  });

  it("asks for no consent where nothing is made", () => {
    renderUi(<CheckList checks={[leftOut]} />);
    expect(screen.queryByRole("checkbox")).toBeNull();
    expect(summary([leftOut])).toBe("1 needs your consent.");
  });

  it("sums up", () => {
    expect(summary(checks)).toBe("1 of 3 checks passed, 1 warning, 1 failed.");
  });
});
