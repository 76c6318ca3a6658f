import { expect, test } from "@playwright/test";
import { stack } from "../../environment/stack.ts";
import { DatabaseForm } from "../../screens/database-form.ts";

const right = {
  name: "not to be kept",
  host: stack.source.host,
  port: stack.source.port,
  dbname: "demo",
  user: "thalweg",
  password: stack.source.thalweg,
};

const faults = [
  {
    what: "a port where nothing listens",
    entry: { ...right, port: 1 },
    says: ["127.0.0.1:1", "Check host and port", "database_unreachable"],
  },
  {
    what: "a host that does not exist",
    entry: { ...right, host: "nowhere.invalid" },
    says: ["nowhere.invalid", "Check the host name", "database_unreachable"],
  },
  {
    what: "a wrong password",
    entry: { ...right, password: "wrong" },
    says: ["password authentication failed", "Correct the user and the password", "ALTER ROLE"],
  },
  {
    what: "a database that does not exist",
    entry: { ...right, dbname: "nothing_here" },
    says: ["nothing_here", "CREATE DATABASE", "unknown_database"],
  },
];

for (const { what, entry, says } of faults) {
  test(`${what} is named with its cure`, async ({ page }) => {
    const form = new DatabaseForm(page);
    await page.goto("/databases");
    await page.getByRole("button", { name: "Add database" }).first().click();
    await form.fill(entry);
    await form.test.click();
    for (const text of ["The connection test failed", "Cure:", ...says]) {
      await expect(form.problem).toContainText(text);
    }
  });
}

test("the form goes from the cure to a working connection", async ({ page }) => {
  const form = new DatabaseForm(page);
  await page.goto("/databases");
  await page.getByRole("button", { name: "Add database" }).first().click();
  await form.fill({ ...right, password: "wrong" });
  await form.test.click();
  await expect(form.problem).toContainText("Cure:");

  await form.fill(right);
  await form.expectConnected();
  await expect(form.problem).toBeHidden();
  await page.keyboard.press("Escape");
  await expect(form.drawer).toBeHidden();
  await expect(page.getByRole("link", { name: right.name })).toHaveCount(0);
});
