import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { finding } from "@/test/advisor";
import { renderUi } from "@/test/render";
import { EvidenceTable } from "./evidence-table";

it("is a table where there is room for one, and lines on a phone", () => {
  const { unmount } = renderUi(<EvidenceTable finding={finding} />);
  expect(screen.getByRole("table")).toBeVisible();
  unmount();
  const wide = window.matchMedia;
  vi.stubGlobal("matchMedia", (query: string) => ({ ...wide(query), matches: query.includes("max-width") }));
  renderUi(<EvidenceTable finding={finding} />);
  expect(screen.queryByRole("table")).toBeNull();
  const lines = screen.getByRole("list", { name: `Evidence of ${finding.title}` });
  expect(lines).toHaveTextContent(finding.evidence[0]?.statistic ?? "?");
});
