// axe finds nothing, on every page and dialogue, in light and in dark.
import { expect, test } from "@playwright/test";
import { stack } from "../environment/stack.ts";
import { Shell } from "../screens/shell.ts";
import { StreamScreen } from "../screens/stream-screen.ts";
import { Wizard } from "../screens/wizard.ts";
import { expectAccessible } from "./accessible.ts";

const entries = [
  "Overview",
  "Topology",
  "Advisor",
  "Lab",
  "Alerts",
  "Databases",
  "Slots",
  "Engines",
  "Operations",
  "Audit",
  "Settings",
] as const;

for (const scheme of ["light", "dark"] as const) {
  test.describe(scheme, () => {
    test.use({ colorScheme: scheme });

    test.beforeEach(async ({ page }) => {
      await page.goto("/");
      await expect(new Shell(page).heading("Overview")).toBeVisible();
      expect(await new Shell(page).colourScheme()).toBe(scheme);
    });

    test("every page of the navigation", async ({ page }) => {
      const shell = new Shell(page);
      for (const entry of entries) {
        await shell.open(entry);
        await expect(page.getByText(/^Loading/)).toHaveCount(0);
        await expectAccessible(page, entry);
      }
      await shell.open("Alerts");
      for (const tab of ["History", "Alert rules", "Channels", "Silences"]) {
        await page.getByRole("tab", { name: tab }).click();
        await expect(page.getByText(/^Loading/)).toHaveCount(0);
        await expectAccessible(page, `Alerts, ${tab}`);
      }
      await shell.open("Settings");
      for (const tab of ["API tokens", "Users"]) {
        await page.getByRole("tab", { name: tab }).click();
        await expectAccessible(page, `Settings, ${tab}`);
      }
    });

    test("at the width of a phone", async ({ page }) => {
      await page.setViewportSize({ width: 390, height: 844 });
      await page.goto("/");
      await expect(page.getByRole("list", { name: "Streams" })).toBeVisible();
      await expectAccessible(page, "Overview of a phone");
      await page.getByRole("link", { name: stack.demo.stream, exact: true }).click();
      await expect(page.getByRole("list", { name: "Components", exact: true })).toBeVisible();
      await expectAccessible(page, "Stream on a phone");
      await page.getByRole("button", { name: "Menu" }).click();
      await expect(page.getByRole("navigation", { name: "Main" })).toBeVisible();
      await expectAccessible(page, "Drawer of a phone");
      for (const path of ["/databases", "/slots", "/advisor", "/alerts"]) {
        await page.goto(path);
        await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
        await expect(page.getByText(/^Loading/)).toHaveCount(0);
        await expectAccessible(page, `${path} on a phone`);
      }
    });

    test("a stream's page with all its tabs and its dialogue", async ({ page }) => {
      const stream = new StreamScreen(page);
      await stream.open(stack.demo.stream);
      await expect(stream.strip).toBeVisible();
      await expectAccessible(page, "Now");
      await page.getByRole("button", { name: "Appliers in detail" }).click();
      await expect(page.getByRole("table", { name: "Threads of Appliers" })).toBeVisible();
      await expectAccessible(page, "Now, opened to the appliers' threads");
      await page.getByRole("radiogroup", { name: "View of the components" }).getByText("Table").click();
      await expectAccessible(page, "Now, components as a table");
      for (const tab of [/^History/, /^Transactions/, /^Latency/, /^Tables/, /^Parameters/, /^Error queue/]) {
        await stream.tab(tab);
        await expect(page.getByText(/^Loading/)).toHaveCount(0);
        await expectAccessible(page, String(tab));
      }
      await stream.action("Delete").click();
      await expect(page.getByRole("dialog", { name: "Delete stream" })).toBeVisible();
      await expectAccessible(page, "Delete stream");
    });

    test("the advisor's tabs and dialogues, a run opened to a stage's threads", async ({ page }) => {
      await new Shell(page).open("Advisor");
      for (const tab of ["Schedules", "Cures"]) {
        await page.getByRole("tab", { name: tab }).click();
        await expect(page.getByText(/^Loading/)).toHaveCount(0);
        await expectAccessible(page, `Advisor, ${tab}`);
      }
      await page.getByRole("button", { name: "Take a snapshot with options" }).click();
      const dialog = page.getByRole("dialog", { name: "Take a snapshot" });
      await expect(dialog).toBeVisible();
      await expectAccessible(page, "Take a snapshot");
      await dialog.getByRole("button", { name: "Take the snapshot" }).click();
      await page.getByRole("button", { name: "Appliers in detail" }).click();
      await expect(page.getByRole("table", { name: "Threads of Appliers" })).toBeVisible();
      await expectAccessible(page, "Run");
    });

    test("a database's page and the form", async ({ page }) => {
      await page.goto("/databases");
      await page.getByRole("link", { name: stack.demo.source, exact: true }).click();
      await expect(page.getByRole("table", { name: "Tables of the database" })).toBeVisible();
      await expect(
        page.getByRole("region", { name: "Preflight" }).getByRole("listitem").first(),
      ).toBeVisible();
      await expectAccessible(page, "Database");
      await page.getByRole("link", { name: "Changes", exact: true }).click();
      await expect(page.getByText("The log cannot be searched")).toBeVisible();
      await expectAccessible(page, "Changes of a database whose log nobody keeps");
      await page.goto("/databases");
      await page.getByRole("button", { name: "Add database" }).first().click();
      const form = page.getByRole("dialog", { name: "Add database" });
      await form.getByRole("button", { name: "Test connection" }).click();
      await expect(form.getByText("Required.").first()).toBeVisible();
      await expectAccessible(page, "Add database");
    });

    test("the wizard's steps", async ({ page }) => {
      const wizard = new Wizard(page);
      await page.goto("/streams/new");
      await wizard.choose(stack.demo.source);
      await expectAccessible(page, "Source");
      await wizard.goOnTo("Destination");
      await wizard.choose(stack.demo.destination);
      await expectAccessible(page, "Destination");
      await wizard.goOnTo("Tables");
      await expect(page.getByRole("checkbox", { name: "Replicate public.pgbench_accounts" })).toBeChecked();
      await expectAccessible(page, "Tables");
      await wizard.goOnTo("Preflight");
      await expect(wizard.step("Preflight").getByRole("listitem").first()).toBeVisible();
      await expectAccessible(page, "Preflight");
    });
  });

  test.describe(`${scheme}, logged out`, () => {
    test.use({ colorScheme: scheme, storageState: { cookies: [], origins: [] } });

    test("the login with its problem", async ({ page }) => {
      await page.goto("/login");
      await page.getByLabel("User name").fill("nobody");
      await page.getByLabel("Password", { exact: true }).fill("wrong");
      await page.getByRole("button", { name: "Log in" }).click();
      await expect(page.getByRole("alert")).toBeVisible();
      await expectAccessible(page, "Login");
    });
  });
}
