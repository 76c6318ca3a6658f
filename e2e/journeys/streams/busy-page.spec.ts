// The page of a stream with 60 tables and two destinations costs little of the reader's machine, and its buttons answer.
import { type Browser, expect, test } from "@playwright/test";
import { standIn } from "../../environment/busy-stream.ts";

/** Of one core, in percent, of all of the browser's processes: its drawing is not the main thread's alone. */
const BUSY_MAX = 25;
const SECONDS = 4;

/** Seconds of processor time that the browser has taken so far. */
async function spentBy(browser: Browser): Promise<() => Promise<number>> {
  const session = await browser.newBrowserCDPSession();
  return async () => {
    const { processInfo } = await session.send("SystemInfo.getProcessInfo");
    return processInfo.reduce((sum, { cpuTime }) => sum + cpuTime, 0);
  };
}

test("the page of 60 tables and two destinations stays under a quarter of a core, and answers", async ({
  page,
  browser,
}) => {
  const spent = await spentBy(browser);
  await page.goto(await standIn(page));
  for (const tab of ["Now", "Tables (60)"]) {
    await page.getByRole("tab", { name: tab }).click();
    await expect(page.getByRole("tabpanel", { name: tab })).toBeVisible();
    // Opening the tab costs extra; the measurement begins after that.
    await page.waitForTimeout(1500);
    const [before, begin] = [await spent(), Date.now()];
    await page.waitForTimeout(SECONDS * 1000);
    const share = (100 * 1000 * ((await spent()) - before)) / (Date.now() - begin);
    test.info().annotations.push({ type: "figure", description: `${tab}: ${share.toFixed(1)} % of a core` });
    expect(share).toBeGreaterThan(0);
    expect(share).toBeLessThan(BUSY_MAX);
  }
});
