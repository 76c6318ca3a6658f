// axe finds nothing, on every page and dialogue, in light and in dark.
import AxeBuilder from "@axe-core/playwright";
import { expect, type Page, test } from "@playwright/test";
import { stack } from "../environment/stack.ts";
import { Shell } from "../screens/shell.ts";
import { StreamScreen } from "../screens/stream-screen.ts";
import { Wizard } from "../screens/wizard.ts";

async function expectNoViolations(page: Page, where: string): Promise<void> {
  const { violations } = await new AxeBuilder({ page })
    .options({ rules: { "target-size": { enabled: true } } })
    .analyze();
  const found = violations.flatMap(({ id, help, nodes }) =>
    nodes.map(
      (node) =>
        `${id} (${help}): ${node.target.join(" ")} — ${node.failureSummary?.split("\n").at(1)?.trim()}`,
    ),
  );
  expect.soft(found, where).toEqual([]);
}

/**
 * Links and buttons that a finger misses: around its middle each is hit over 24 px. Links in sentences may be as low as
 * their lines; what lies below something else is no target now.
 */
async function smallTargets(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const inSentence = (element: Element) =>
      element.matches("a") &&
      [...(element.parentElement?.childNodes ?? [])].some(
        (node) => node.nodeType === Node.TEXT_NODE && /\p{L}{2}/u.test(node.textContent ?? ""),
      );
    const found = [...document.querySelectorAll("a[href], button, [role=button]")].flatMap((element) => {
      if (inSentence(element)) return [];
      element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
      const { left, top, width, height } = element.getBoundingClientRect();
      const isHit = (right: number, down: number) =>
        element.contains(document.elementFromPoint(left + width / 2 + right, top + height / 2 + down));
      const reached = [isHit(-11.5, 0), isHit(11.5, 0), isHit(0, -11.5), isHit(0, 11.5)];
      if (!isHit(0, 0) || reached.every(Boolean)) return [];
      const name = element.getAttribute("aria-label") ?? element.textContent?.trim();
      return [`${element.tagName} “${name}”: ${Math.round(width)}×${Math.round(height)}`];
    });
    window.scrollTo(0, 0);
    return found;
  });
}

/** Fades and slides change contrast on their way. */
async function settled(page: Page): Promise<void> {
  await page.evaluate(() =>
    Promise.allSettled(
      document
        .getAnimations()
        .filter((animation) => animation.effect?.getComputedTiming().iterations !== Number.POSITIVE_INFINITY)
        .map((animation) => animation.finished),
    ),
  );
}

async function check(page: Page, where: string): Promise<void> {
  // The pointer rests where it clicked last: what lies there now may show its tooltip, or be about to.
  await page.mouse.move(0, 0);
  await expect(page.getByRole("tooltip")).toHaveCount(0);
  await settled(page);
  await expectNoViolations(page, where);
  expect.soft(await smallTargets(page), `${where}: targets of less than 24 px`).toEqual([]);
}

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
        await check(page, entry);
      }
      await shell.open("Alerts");
      for (const tab of ["History", "Alert rules", "Channels", "Silences"]) {
        await page.getByRole("tab", { name: tab }).click();
        await expect(page.getByText(/^Loading/)).toHaveCount(0);
        await check(page, `Alerts, ${tab}`);
      }
      await shell.open("Settings");
      for (const tab of ["API tokens", "Users"]) {
        await page.getByRole("tab", { name: tab }).click();
        await check(page, `Settings, ${tab}`);
      }
    });

    test("at the width of a phone", async ({ page }) => {
      await page.setViewportSize({ width: 390, height: 844 });
      await page.goto("/");
      await expect(page.getByRole("list", { name: "Streams" })).toBeVisible();
      await check(page, "Overview of a phone");
      await page.getByRole("link", { name: stack.demo.stream, exact: true }).click();
      await expect(page.getByRole("list", { name: "Components", exact: true })).toBeVisible();
      await check(page, "Stream on a phone");
      await page.getByRole("button", { name: "Menu" }).click();
      await expect(page.getByRole("navigation", { name: "Main" })).toBeVisible();
      await check(page, "Drawer of a phone");
      for (const path of ["/databases", "/slots", "/advisor", "/alerts"]) {
        await page.goto(path);
        await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
        await expect(page.getByText(/^Loading/)).toHaveCount(0);
        await check(page, `${path} on a phone`);
      }
    });

    test("a stream's page with all its tabs and its dialogue", async ({ page }) => {
      const stream = new StreamScreen(page);
      await stream.open(stack.demo.stream);
      await expect(stream.strip).toBeVisible();
      await check(page, "Now");
      await page.getByRole("button", { name: "Appliers in detail" }).click();
      await expect(page.getByRole("table", { name: "Threads of Appliers" })).toBeVisible();
      await check(page, "Now, opened to the appliers' threads");
      await page.getByRole("radiogroup", { name: "View of the components" }).getByText("Table").click();
      await check(page, "Now, components as a table");
      for (const tab of [/^History/, /^Transactions/, /^Latency/, /^Tables/, /^Parameters/, /^Error queue/]) {
        await stream.tab(tab);
        await expect(page.getByText(/^Loading/)).toHaveCount(0);
        await check(page, String(tab));
      }
      await stream.action("Delete").click();
      await expect(page.getByRole("dialog", { name: "Delete stream" })).toBeVisible();
      await check(page, "Delete stream");
    });

    test("the advisor's tabs and dialogues, a run opened to a stage's threads", async ({ page }) => {
      await new Shell(page).open("Advisor");
      for (const tab of ["Schedules", "Cures"]) {
        await page.getByRole("tab", { name: tab }).click();
        await expect(page.getByText(/^Loading/)).toHaveCount(0);
        await check(page, `Advisor, ${tab}`);
      }
      await page.getByRole("button", { name: "Take a snapshot with options" }).click();
      const dialog = page.getByRole("dialog", { name: "Take a snapshot" });
      await expect(dialog).toBeVisible();
      await check(page, "Take a snapshot");
      await dialog.getByRole("button", { name: "Take the snapshot" }).click();
      await page.getByRole("button", { name: "Appliers in detail" }).click();
      await expect(page.getByRole("table", { name: "Threads of Appliers" })).toBeVisible();
      await check(page, "Run");
    });

    test("a database's page and the form", async ({ page }) => {
      await page.goto("/databases");
      await page.getByRole("link", { name: stack.demo.source, exact: true }).click();
      await expect(page.getByRole("table", { name: "Tables of the database" })).toBeVisible();
      await expect(
        page.getByRole("region", { name: "Preflight" }).getByRole("listitem").first(),
      ).toBeVisible();
      await check(page, "Database");
      await page.goto("/databases");
      await page.getByRole("button", { name: "Add database" }).first().click();
      const form = page.getByRole("dialog", { name: "Add database" });
      await form.getByRole("button", { name: "Test connection" }).click();
      await expect(form.getByText("Required.").first()).toBeVisible();
      await check(page, "Add database");
    });

    test("the wizard's steps", async ({ page }) => {
      const wizard = new Wizard(page);
      await page.goto("/streams/new");
      await wizard.choose(stack.demo.source);
      await check(page, "Source");
      await wizard.goOnTo("Destination");
      await wizard.choose(stack.demo.destination);
      await check(page, "Destination");
      await wizard.goOnTo("Tables");
      await expect(page.getByRole("checkbox", { name: "Replicate public.pgbench_accounts" })).toBeChecked();
      await check(page, "Tables");
      await wizard.goOnTo("Preflight");
      await expect(wizard.step("Preflight").getByRole("listitem").first()).toBeVisible();
      await check(page, "Preflight");
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
      await check(page, "Login");
    });
  });
}
