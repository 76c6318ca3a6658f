// At the width of a phone: the menu is a drawer, streams are cards, an alert is acknowledged with the thumb.
import { expect, type Page, test } from "@playwright/test";
import { stack } from "../../environment/stack.ts";
import { Shell } from "../../screens/shell.ts";

test.use({ viewport: { width: 390, height: 844 }, hasTouch: true });

/** Least size of a touch target. */
const THUMB_PX = 44;

async function expectNoSidewaysScroll(page: Page, where: string): Promise<void> {
  await expect(page.getByText(/^Loading/)).toHaveCount(0);
  const width = await page.evaluate(() => document.scrollingElement?.scrollWidth);
  expect(width, where).toBe(390);
}

test("a card for each stream leads to its page; the drawer leads everywhere", async ({ page }) => {
  const shell = new Shell(page);
  await page.goto("/");
  const card = page.getByRole("list", { name: "Streams" }).getByRole("listitem", { name: stack.demo.stream });
  await expect(card).toContainText("Replicating");
  await expect(card).toContainText(/LCR\/s/);
  await expectNoSidewaysScroll(page, "Overview");
  await card.getByRole("link", { name: stack.demo.stream, exact: true }).tap();
  await expect(shell.heading(stack.demo.stream)).toBeVisible();
  await expect(page.getByRole("list", { name: "Components", exact: true })).toBeVisible();
  await expectNoSidewaysScroll(page, "Stream");
  await page.getByRole("tab", { name: "History" }).tap();
  await expect(page.getByRole("heading", { name: "Charts", exact: true })).toBeAttached();
  await expectNoSidewaysScroll(page, "History");
  for (const entry of ["Alerts", "Databases", "Engines", "Advisor", "Operations", "Audit", "Settings"]) {
    await page.getByRole("button", { name: "Menu" }).tap();
    const drawer = page.getByRole("dialog", { name: "Thalweg" });
    await drawer.getByRole("link", { name: entry, exact: true }).tap();
    await expect(shell.heading(entry)).toBeVisible();
    await expect(drawer).toBeHidden();
    await expectNoSidewaysScroll(page, entry);
  }
});

test("changes and databases are cards whose words stay on the screen", async ({ page }) => {
  for (const [path, label] of [
    ["/audit", "Audit log"],
    ["/databases", "Databases"],
  ] as const) {
    await page.goto(path);
    const cards = page.getByRole("list", { name: label }).getByRole("listitem");
    await expect(cards.first()).toBeVisible();
    await expectNoSidewaysScroll(page, label);
    const sticksOut = await cards
      .first()
      .evaluate((card) =>
        [...card.querySelectorAll("*")]
          .filter((part) => part.getBoundingClientRect().right > 390)
          .map((part) => part.textContent),
      );
    expect(sticksOut, label).toEqual([]);
  }
});

test("a failed stream's page shows the whole error, however long its names are", async ({ page }) => {
  const key = `Key (region)=(${"a_value_without_any_space_".repeat(4)}) is not present in table "regions".`;
  const table = `public.${"a_table_with_a_long_name_".repeat(2)}`;
  const error = {
    code: "apply_failed",
    side: "destination",
    class: "permanent",
    title: "A change could not be applied",
    message: "A row of another table is missing.",
    detail: key,
    cure: `Repair the row: UPDATE ${table} SET region = 'north'`,
    sqlstate: "23503",
    table,
    lsn: "0/1A2B3C4D",
    xid: 7412345,
    at: new Date().toISOString(),
  };
  const failed = { status: "ABORTED", phase: "STOPPED", state: "ABORTED", error };
  // The demo is healthy: what the page reads of its stream is made worse.
  await page.route(/\/api\/v1\/streams\/[a-z0-9]{12}$/, async (route) => {
    const stream = await (await route.fetch()).json();
    const destinations = stream.destinations.map((each: object) => ({ ...each, ...failed }));
    await route.fulfill({ json: { ...stream, ...failed, destinations } });
  });
  await page.goto("/");
  await page
    .getByRole("list", { name: "Streams" })
    .getByRole("link", { name: stack.demo.stream, exact: true })
    .tap();
  const told = page.getByRole("alert").filter({ hasText: error.title }).first();
  for (const words of [key, table]) {
    const box = await told.getByText(words).first().boundingBox();
    expect((box?.x ?? 0) + (box?.width ?? 0), words).toBeLessThanOrEqual(390);
  }
  for (const tab of ["Now", "History", "Transactions", "Latency", /^Tables/, "Parameters", /^Error queue/]) {
    await page.getByRole("tab", { name: tab }).tap();
    await expectNoSidewaysScroll(page, `Failed stream: ${tab}`);
  }
  // The page asks again and again: an answer may still be on its way here when the journey ends.
  await page.unrouteAll({ behavior: "wait" });
});

test("an alert is acknowledged with the thumb", async ({ page }) => {
  const alert = {
    id: "1",
    rule: "latency",
    title: "Latency above its threshold",
    severity: "critical",
    state: "firing",
    subject: { type: "stream", id: "s", name: stack.demo.stream },
    stream_id: "s",
    message: "Latency is 40 s.",
    meaning: "The destination is late.",
    action: "Look at the path.",
    page: "/",
    fired_at: new Date().toISOString(),
    pending_at: new Date().toISOString(),
    silenced: false,
    acknowledged_at: null as string | null,
    acknowledged_by: null as string | null,
    note: null,
    run_id: null,
  };
  // The demo is healthy: only what the page reads and writes of this alert is stood in for.
  await page.route(/\/api\/v1\/alerts\?/, (route) =>
    route.fulfill({ json: { items: [alert], next_cursor: null } }),
  );
  await page.route("**/api/v1/alerts/1/acknowledge", (route) => {
    Object.assign(alert, { acknowledged_at: new Date().toISOString(), acknowledged_by: stack.admin.name });
    return route.fulfill({ json: alert });
  });
  await page.goto("/alerts");
  const card = page.getByRole("article", { name: /Latency above its threshold/ });
  const button = card.getByRole("button", { name: "Acknowledge…" });
  expect((await button.boundingBox())?.height).toBeGreaterThanOrEqual(THUMB_PX);
  await button.tap();
  const dialog = page.getByRole("dialog", { name: "Acknowledge alert" });
  const confirm = dialog.getByRole("button", { name: "Acknowledge" });
  expect((await confirm.boundingBox())?.height).toBeGreaterThanOrEqual(THUMB_PX);
  await confirm.tap();
  await expect(card).toContainText(`Acknowledged by ${stack.admin.name}`);
});
