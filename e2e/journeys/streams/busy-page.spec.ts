// The page of a stream with 60 tables and two destinations costs little of the reader's machine, and its buttons answer.
import { expect, test } from "@playwright/test";
import { standIn } from "../../environment/busy-stream.ts";
import { costOfFixedWork, spentBy } from "../../environment/processor-time.ts";

/** Of one core, in percent, on a machine on which the fixed work costs FIXED_WORK_SECONDS. */
const BUSY_MAX = 25;
/** Half of what it costs on two old cores without a graphics card, where the page takes 30 %. */
const FIXED_WORK_SECONDS = 1.6;
const SECONDS = 4;

test("the page of 60 tables and two destinations stays under a quarter of a core, and answers", async ({
  page,
  browser,
}) => {
  const spent = await spentBy(browser);
  const slowness = (await costOfFixedWork(browser)) / FIXED_WORK_SECONDS;
  test
    .info()
    .annotations.push({ type: "figure", description: `slowness of this machine: ${slowness.toFixed(2)}` });
  await page.goto(await standIn(page));
  for (const tab of ["Now", "Tables (60)"]) {
    await page.getByRole("tab", { name: tab }).click();
    await expect(page.getByRole("tabpanel", { name: tab })).toBeVisible();
    // Opening the tab costs extra; the measurement begins after that.
    await page.waitForTimeout(1500);
    const [before, begin] = [await spent(), Date.now()];
    await page.waitForTimeout(SECONDS * 1000);
    const share = (100 * 1000 * ((await spent()) - before)) / (Date.now() - begin) / slowness;
    test.info().annotations.push({ type: "figure", description: `${tab}: ${share.toFixed(1)} % of a core` });
    expect(share).toBeGreaterThan(0);
    expect(share).toBeLessThan(BUSY_MAX);
  }
});
