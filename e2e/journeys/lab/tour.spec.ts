// The tour that the overview offers: more load arrives, a real cause makes the demo slow, the advisor names it, and all is
// as before with one click.
import { expect, test } from "@playwright/test";
import { patience } from "../../environment/patience.ts";
import { sql } from "../../environment/postgres.ts";
import { stack } from "../../environment/stack.ts";
import { LabScreen } from "../../screens/lab-screen.ts";

const headers = { Authorization: `Bearer ${stack.apiToken()}` };
const triggers = () =>
  sql(
    stack.destination,
    "demo",
    "SELECT tgname FROM pg_trigger WHERE tgrelid = 'pgbench_accounts'::regclass AND tgname = 'lab_check_account'",
  );

test.afterEach(async ({ request }) => {
  await request.post("/api/v1/lab:reset", { headers });
});

test("a slow trigger of the lab is named by the advisor within a minute, and gone with one click", async ({
  page,
}) => {
  const lab = new LabScreen(page);
  await page.goto("/");
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Lab" }).click();
  await expect(lab.verdict).toContainText("No bottleneck");

  const trigger = lab.cause("Slow trigger");
  await trigger.getByRole("button", { name: "Make it slow" }).click();
  await expect(trigger).toContainText("On");
  await expect(trigger.getByRole("timer")).toContainText(/ends by itself in (10:00|9:\d\d)/);
  await expect(lab.verdict).toContainText(
    "A trigger fires for every change that is applied to public.pgbench_accounts",
    { timeout: patience(60_000) },
  );
  expect(await triggers()).toBe("lab_check_account");
  await page.screenshot({ path: test.info().outputPath("named.png"), fullPage: true });

  await trigger.getByRole("button", { name: "Back to normal" }).click();
  await expect(trigger).toContainText("Off");
  expect(await triggers()).toBe("");
  await expect(lab.verdict).toContainText("No bottleneck");
});

test("a slow network is named by the advisor, with its round trip, and quick again with one click", async ({
  page,
}) => {
  const lab = new LabScreen(page);
  await lab.open();
  await expect(lab.verdict).toContainText("No bottleneck");
  const network = lab.cause("Slow network");
  await network.getByRole("slider", { name: "Delay each way, in milliseconds" }).focus();
  await page.keyboard.press("End");
  await expect(network).toContainText("100 ms delay each way");
  await network.getByRole("button", { name: "Make it slow" }).click();
  await expect(network).toContainText("On");
  await expect(lab.verdict).toContainText("The network to warehouse is slow");
  await page.screenshot({ path: test.info().outputPath("network.png"), fullPage: true });

  // The stream's own page says the same: it too knows what the databases say.
  await page.getByRole("region", { name: "The advisor's verdict" }).getByRole("link").first().click();
  await expect(page.getByRole("status", { name: "Health of the stream" })).toContainText(
    "The network to warehouse is slow",
  );
  await expect(page.getByRole("region", { name: "Findings" })).toContainText(
    "The network to warehouse is slow",
  );
  await page.screenshot({ path: test.info().outputPath("stream.png"), fullPage: true });
  await lab.open();

  await network.getByRole("button", { name: "Back to normal" }).click();
  await expect(network).toContainText("Off");
  await expect(lab.verdict).toContainText("No bottleneck");
});

test("the load follows the slider", async ({ page }) => {
  const lab = new LabScreen(page);
  const written = async () =>
    Number(await sql(stack.source, "demo", "SELECT sum(n_tup_ins + n_tup_upd) FROM pg_stat_user_tables"));
  const writtenSoon = async () => {
    const before = await written();
    await page.waitForTimeout(3000);
    return (await written()) - before;
  };
  await lab.open();
  await lab.load.focus();
  await page.keyboard.press("ArrowRight");
  await expect(page.getByText("200 transactions a second")).toBeVisible();
  await page.keyboard.press("Home");
  await expect(page.getByText("0 transactions a second", { exact: true })).toBeVisible();
  await expect(async () => expect(await writtenSoon()).toBe(0)).toPass();
  await page.getByRole("button", { name: "All back to normal" }).click();
  await expect(page.getByText(/100 transactions a second – the usual load/)).toBeVisible();
  // How many a second: as many as the source's disk allows.
  await expect(async () => expect(await writtenSoon()).toBeGreaterThan(0)).toPass();
});
