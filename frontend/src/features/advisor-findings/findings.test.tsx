import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import { finding } from "@/test/advisor";
import { renderUi } from "@/test/render";
import { Findings } from "./findings";

it("leads from each finding to its entry in the reference", () => {
  const spill = { ...finding, id: "2", code: "apply_spill" as const, title: "Apply writes to disk" };
  renderUi(<Findings findings={[finding, spill]} />);
  for (const { code, title } of [finding, spill]) {
    const item = screen.getByRole("listitem", { name: title });
    const link = within(item).getByRole("link", { name: `Guide to “${title}”` });
    expect(link).toHaveAttribute("href", `/help/reference/findings.html#${code}`);
  }
});
