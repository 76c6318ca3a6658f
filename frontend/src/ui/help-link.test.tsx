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
