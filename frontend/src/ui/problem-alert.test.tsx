import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import { expectNoAxeViolations, renderUi } from "@/test/render";
import { ProblemAlert } from "./problem-alert";

const problem = {
  title: "The databases are not ready for this stream",
  message: "1 check failed.",
  code: "preflight_failed",
  facts: ["request req-1"],
  cure: "Cure what failed, then try again.",
  sql: "ALTER SYSTEM SET wal_level = 'logical';",
  parts: [{ pointer: "/source_id", message: "wal_level is replica.", cure: "Set it.", sql: null }],
};

describe("ProblemAlert", () => {
  it("says what happened, where, and what to do, with the SQL to copy", async () => {
    const retry = vi.fn();
    renderUi(<ProblemAlert problem={problem} onRetry={retry} />);
    const alert = screen.getByRole("alert");
    for (const text of [
      "The databases are not ready for this stream",
      "1 check failed.",
      "/source_id:",
      "wal_level is replica. Set it.",
      "Cure what failed, then try again.",
      "ALTER SYSTEM SET wal_level = 'logical';",
      "preflight_failed · request req-1",
    ])
      expect(alert).toHaveTextContent(text);
    expect(screen.getByRole("button", { name: "Copy SQL" })).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Try again" }));
    expect(retry).toHaveBeenCalledOnce();
    await expectNoAxeViolations();
  });

  it("breaks names and values that are longer than a phone is wide", () => {
    const long = "public.a_table_with_a_name_of_sixty_three_characters_that_has_no_space";
    renderUi(<ProblemAlert problem={{ title: `Update of ${long}`, message: `Key (id)=(${long})` }} />);
    for (const text of [`Update of ${long}`, `Key (id)=(${long})`]) {
      const parts = [screen.getByText(text)];
      while (parts[0]?.parentElement) parts.unshift(parts[0].parentElement);
      expect(parts.map(({ style }) => style.overflowWrap)).toContain("anywhere");
    }
  });
});
