import { expect, test } from "@playwright/test";
import { stack } from "../../environment/stack.ts";
import { Shell } from "../../screens/shell.ts";
import { rateIn } from "../../screens/stream-screen.ts";

const { demo } = stack;

test("the overview shows the demo stream's health in words, its rate and its latency", async ({ page }) => {
  await page.goto("/");
  const row = page.getByRole("table", { name: "Streams" }).getByRole("row", { name: demo.stream });
  await expect(row).toContainText("Healthy");
  await expect(row).toContainText("Replicating");
  // pgbench runs against the source all the time: three updates and an insert each transaction.
  await expect.poll(async () => rateIn(await row.innerText(), "LCR")).toBeGreaterThan(0);
  await expect(row).toContainText(/[\d.]+\s(µs|ms|s)/u);
  await expect(page.getByText("Live", { exact: true })).toBeVisible();
});

test("the topology shows databases and components, and leads to the stream", async ({ page }) => {
  await page.goto("/topology");
  const graph = page.getByLabel("Graph of databases and components");
  for (const database of [demo.source, demo.destination]) {
    await expect(graph.getByRole("button", { name: new RegExp(`^${database}\\b`) })).toBeVisible();
  }
  const links = page.getByRole("table", { name: "Links" });
  await expect(links.getByRole("row").filter({ hasText: "write-ahead log" })).not.toHaveCount(0);
  await expect
    .poll(async () =>
      rateIn(await links.getByRole("row").filter({ hasText: "logical change" }).first().innerText(), "LCR"),
    )
    .toBeGreaterThan(0);
  await graph
    .getByRole("button", { name: /capture/i })
    .first()
    .click();
  await expect(new Shell(page).heading(demo.stream)).toBeVisible();
});

test("the colours can be switched to dark and stay so", async ({ page }) => {
  const shell = new Shell(page);
  await page.goto("/");
  await expect(shell.colours).toBeVisible();
  const light = await page.locator("body").evaluate((body) => getComputedStyle(body).backgroundColor);
  for (let press = 0; press < 3 && (await shell.colourScheme()) !== "dark"; press += 1)
    await shell.colours.click();
  expect(await shell.colourScheme()).toBe("dark");
  await expect
    .poll(() => page.locator("body").evaluate((body) => getComputedStyle(body).backgroundColor))
    .not.toBe(light);
  await page.reload();
  await expect(shell.heading("Overview")).toBeVisible();
  expect(await shell.colourScheme()).toBe("dark");
});
