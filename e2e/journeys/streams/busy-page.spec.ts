// The page of a stream with 60 tables and two destinations costs little of the reader's machine, and its buttons answer.
import { expect, type Page, test } from "@playwright/test";
import { standIn } from "../../environment/busy-stream.ts";
import { patience } from "../../environment/patience.ts";
import { costOfFixedWork, spentBy } from "../../environment/processor-time.ts";

/** Of one core, in percent, on a machine on which the fixed work costs FIXED_WORK_SECONDS. The page takes 10 %. */
const BUSY_MAX = 25;
/** On one core of an AMD EPYC of 2026, without a graphics card. Slower machines have more time; faster ones no less. */
const FIXED_WORK_SECONDS = 1;
/** Of one core of any machine, in percent. */
const BUSY_MAX_ANYWHERE = 50;
const SECONDS = 4;
/** Between a press and what it opens or closes, in milliseconds: long for people, and short for a page that hangs. */
const ANSWER_MAX_MS = patience(5000);

test("the page of 60 tables and two destinations stays under a quarter of a core, and answers", async ({
  page,
  browser,
}) => {
  const spent = await spentBy(browser);
  const slowness = Math.max(1, (await costOfFixedWork(browser)) / FIXED_WORK_SECONDS);
  const figure = (description: string) => test.info().annotations.push({ type: "figure", description });
  figure(`slowness of this machine: ${slowness.toFixed(2)}`);
  await page.goto(await standIn(page));
  for (const tab of ["Now", "Tables (60)"]) {
    await page.getByRole("tab", { name: tab }).click();
    await expect(page.getByRole("tabpanel", { name: tab })).toBeVisible();
    // Opening the tab costs extra; the measurement begins after that.
    await page.waitForTimeout(patience(1500));
    const [before, begin] = [await spent(), Date.now()];
    await page.waitForTimeout(SECONDS * 1000);
    const share = (100 * 1000 * ((await spent()) - before)) / (Date.now() - begin);
    figure(`${tab}: ${share.toFixed(1)} % of a core`);
    expect(share).toBeGreaterThan(0);
    expect(share / slowness).toBeLessThan(BUSY_MAX);
    expect(share).toBeLessThan(BUSY_MAX_ANYWHERE);
    figure(`${tab}: Stop answers in ${await opensAndCloses(page, "Stop", /^Stop /)} ms`);
  }
  await page.getByRole("tab", { name: "Now" }).click();
  for (const name of ["warehouse", "archive"])
    figure(`Pause answers in ${await opensAndCloses(page, `Pause ${name}`, `Pause ${name}`)} ms`);
});

/** Presses a button whose dialog asks first, cancels, and gives the longer of both times. */
async function opensAndCloses(page: Page, button: string, title: string | RegExp): Promise<number> {
  const dialog = page.getByRole("dialog", { name: title });
  const pressed = page.getByRole("button", { name: button, exact: true });
  await expect(pressed).toBeVisible();
  const begin = Date.now();
  await pressed.click({ timeout: ANSWER_MAX_MS });
  await expect(dialog).toBeVisible({ timeout: ANSWER_MAX_MS });
  const opened = Date.now();
  await dialog.getByRole("button", { name: "Cancel" }).click({ timeout: ANSWER_MAX_MS });
  await expect(dialog).toBeHidden({ timeout: ANSWER_MAX_MS });
  return Math.max(opened - begin, Date.now() - opened);
}
