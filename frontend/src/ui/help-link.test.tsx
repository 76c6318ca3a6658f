import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { renderUi } from "@/test/render";
import { HelpLink } from "./help-link";

it("opens the guide in the help's own tab", () => {
  renderUi(<HelpLink help="guides/slots" about="slots" />);
  const link = screen.getByRole("link", { name: "Guide to slots" });
  expect(link).toHaveAttribute("href", "/help/guides/slots.html");
  expect(link).toHaveAttribute("target", "thalweg-help");
});

it("opens a reference at the entry", () => {
  renderUi(<HelpLink help="reference/findings" entry="apply_trigger" about="a finding" />);
  const link = screen.getByRole("link", { name: "Guide to a finding" });
  expect(link).toHaveAttribute("href", "/help/reference/findings.html#apply_trigger");
});
