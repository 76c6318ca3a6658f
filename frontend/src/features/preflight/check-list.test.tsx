import { screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import type { Check } from "@/api/types";
import { expectNoAxeViolations, renderUi } from "@/test/render";
import { CheckList } from "./check-list";
import { summary } from "./checks";

const checks: Check[] = [
  {
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
    id: "wal_level",
    side: "source",
    database_id: null,
    title: "wal_level is logical",
    status: "failed",
    detail: "wal_level is replica.",
    cure: "Set it and restart.",
    sql: "ALTER SYSTEM SET wal_level = 'logical';",
  },
  {
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
    expect(first).toHaveTextContent("ALTER SYSTEM SET wal_level = 'logical';");
    expect(second).toHaveTextContent("Passed: A slot is free");
    await expectNoAxeViolations();
  });

  it("sums up", () => {
    expect(summary(checks)).toBe("1 of 3 checks passed, 1 warning, 1 failed.");
  });
});
