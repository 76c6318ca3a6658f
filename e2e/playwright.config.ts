import { join } from "node:path";
import { defineConfig, type ReporterDescription } from "@playwright/test";
import { patience } from "./environment/patience.ts";
import { SESSION_FILE, stack } from "./environment/stack.ts";

const reporters: ReporterDescription[] = [["list"]];
if (process.env.RESULTS) reporters.push(["junit", { outputFile: join(process.env.RESULTS, "e2e.xml") }]);

export default defineConfig({
  testDir: ".",
  outputDir: "test-results/artefacts",
  reporter: reporters,
  // One stack and two cores: journeys that load the databases at the same time would measure each other.
  workers: 1,
  fullyParallel: false,
  forbidOnly: Boolean(process.env.CI),
  retries: 0,
  // The only waits of journeys, but for those that are an assertion, or one of several attempts.
  timeout: patience(300_000),
  expect: { timeout: patience(90_000), toPass: { timeout: patience(90_000) } },
  use: {
    baseURL: stack.consoleUrl,
    viewport: { width: 1280, height: 800 },
    colorScheme: "light",
    locale: "en-GB",
    timezoneId: "UTC",
    actionTimeout: patience(30_000),
    screenshot: "only-on-failure",
    // Without pictures of each frame: on a machine without a graphics card they cost more than the page itself.
    trace: { mode: "retain-on-failure", screenshots: false, snapshots: true, sources: true },
    launchOptions: {
      timeout: patience(60_000),
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      // Root needs --no-sandbox; the others keep the browser from calling hosts that no journey visits.
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
    },
  },
  projects: [
    { name: "login", testMatch: "environment/session.setup.ts" },
    {
      name: "journeys",
      testMatch: "journeys/**/*.spec.ts",
      dependencies: ["login"],
      use: { storageState: SESSION_FILE },
    },
    {
      name: "a11y",
      testMatch: "a11y/*.spec.ts",
      dependencies: ["login"],
      use: { storageState: SESSION_FILE, trace: "off" },
    },
    {
      name: "pictures",
      testMatch: "pictures/*.spec.ts",
      dependencies: ["login"],
      use: { storageState: SESSION_FILE },
    },
  ],
});
