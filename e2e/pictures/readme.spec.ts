// The pictures of the README and of the lab's guide. They change with every run, so they go into the repository only when asked for.
import { mkdirSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, type Page, test } from "@playwright/test";
import { Load } from "../environment/postgres.ts";
import { stack } from "../environment/stack.ts";
import { LabScreen } from "../screens/lab-screen.ts";
import { StreamScreen } from "../screens/stream-screen.ts";

const WANTED = process.env.E2E_SCREENSHOTS === "1";
const FOLDER = fileURLToPath(
  new URL(WANTED ? "../../docs/images" : "../test-results/images", import.meta.url),
);
const BYTES_MAX = 400 * 1024;

const picture = async (page: Page, name: string) => {
  mkdirSync(FOLDER, { recursive: true });
  const path = `${FOLDER}/${name}.png`;
  await page.screenshot({ path, animations: "disabled", caret: "hide" });
  expect(statSync(path).size, path).toBeLessThan(BYTES_MAX);
};

test("the demo stream under load", async ({ page }) => {
  const overview = page.getByRole("table", { name: "Streams" });
  const stream = new StreamScreen(page);
  await page.setViewportSize({ width: 1440, height: 1000 });
  const load = new Load(stack.source, "demo", { script: "--builtin=tpcb-like", rate: 600, seconds: 120 });
  try {
    await stream.open(stack.demo.stream);
    // Well above the demo's usual load, where the pictures are kept; a slow disk does not let it get there.
    await expect.poll(() => stream.lcrRate("Appliers")).toBeGreaterThan(WANTED ? 600 : 0);
    // Enough of the new rate for the charts to show it.
    await page.waitForTimeout(WANTED ? 45_000 : 1_000);
    await picture(page, "stream");
    await page.emulateMedia({ colorScheme: "dark" });
    await picture(page, "stream-dark");
    await page.setViewportSize({ width: 1440, height: 545 });
    await page.goto("/");
    await expect(overview).toContainText("LCR/s");
    await page.waitForLoadState("load");
    await page.waitForTimeout(WANTED ? 3_000 : 500);
    await picture(page, "overview-dark");
    await page.emulateMedia({ colorScheme: "light" });
    await picture(page, "overview");
  } finally {
    await load.stop();
  }
});

test("the lab with a slow network", async ({ page, request }) => {
  const lab = new LabScreen(page);
  const headers = { Authorization: `Bearer ${stack.apiToken()}` };
  await page.setViewportSize({ width: 1440, height: 1440 });
  try {
    await request.post("/api/v1/lab/causes/network:start", { headers, data: { delay_ms: 50 } });
    await lab.open();
    await expect(lab.verdict).toContainText("The network to warehouse is slow");
    await page.waitForTimeout(1_000);
    await picture(page, "lab");
    await page.emulateMedia({ colorScheme: "dark" });
    await picture(page, "lab-dark");
  } finally {
    await request.post("/api/v1/lab:reset", { headers });
  }
});
