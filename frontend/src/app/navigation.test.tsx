import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import { session } from "@/test/data";
import { type Routes, renderAt, stubApi, stubEvents } from "@/test/render";

async function menuOf(role: "viewer" | "admin", more: Routes = {}) {
  stubEvents();
  const body = { ...session, user: { ...session.user, role } };
  stubApi({ "GET /api/v1/session": { body }, "GET /api/v1/slots": { body: { servers: [] } }, ...more });
  renderAt("/slots");
  return within(await screen.findByRole("navigation", { name: "Main" }));
}

it("offers the audit log to those who may read it", async () => {
  expect(await (await menuOf("admin")).findByRole("link", { name: "Audit" })).toBeVisible();
});

it("offers it to nobody else", async () => {
  const menu = await menuOf("viewer");
  expect(menu.getByRole("link", { name: "Settings" })).toBeVisible();
  expect(menu.queryByRole("link", { name: "Audit" })).toBeNull();
});

it("leads everybody to the help, in a tab of its own", async () => {
  const link = (await menuOf("viewer")).getByRole("link", { name: "Help" });
  expect(link).toHaveAttribute("href", "/help/");
  expect(link).toHaveAttribute("target", "thalweg-help");
});

it("shows the lab, which is known late, after all others: none of them moves", async () => {
  const menu = await menuOf("admin", { "GET /api/v1/lab": { body: { available: true, causes: [] } } });
  await menu.findByRole("link", { name: "Lab" });
  expect(menu.getAllByRole("link").at(-1)).toHaveTextContent("Lab");
});
