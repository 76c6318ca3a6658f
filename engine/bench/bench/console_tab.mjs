// One real browser tab on the overview: what a person sees of fifty streams at one-second resolution.
// usage: node console_tab.mjs CONSOLE-URL PASSWORD STREAMS < commands; each command is a line, each answer one line of JSON.
//   begin: forget what was seen; report: what was seen since; end: close the browser.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [url, password, streams] = process.argv.slice(2);
const { chromium } = createRequire(process.env.THALWEG_E2E + "/")("@playwright/test");
const answer = (body) => process.stdout.write(`${JSON.stringify(body)}\n`);

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"],
});
const context = await browser.newContext({ baseURL: url, viewport: { width: 1440, height: 1200 } });
const login = await context.request.post("/api/v1/session", { data: { name: "admin", password } });
if (!login.ok()) throw new Error(`login: ${login.status()} ${await login.text()}`);

const page = await context.newPage();
const session = await context.newCDPSession(page);
await session.send("Network.enable");
await session.send("Performance.enable");
const read = { requests: 0, bytes: 0 };
session.on("Network.loadingFinished", ({ encodedDataLength }) => {
  read.requests += 1;
  read.bytes += encodedDataLength;
});

const began = Date.now();
await page.goto("/");
const rows = page.getByRole("table", { name: "Streams" }).locator("tbody tr");
await rows.nth(Number(streams) - 1).waitFor({ timeout: 60_000 });
await page.getByText("Live", { exact: true }).waitFor({ timeout: 60_000 });
await page.waitForLoadState("domcontentloaded");
const opened = { opened_ms: Date.now() - began, rows: await rows.count() };

await page.evaluate(() => {
  const seen = { changes: new Map(), gaps: [], longTasks: [] };
  window.thalwegSeen = seen;
  const body = document.querySelector('table[aria-label="Streams"] tbody');
  const rowOf = (node) => (node instanceof Element ? node : node.parentElement)?.closest("tr");
  new MutationObserver((records) => {
    const now = performance.now();
    for (const row of new Set(records.map(({ target }) => rowOf(target)))) {
      const name = row?.querySelector("a")?.textContent;
      if (!name) continue;
      // The changes that one sample makes in a row are painted together: those less than 100 ms apart count as one.
      const before = seen.changes.get(name);
      if (before !== undefined && now - before < 100) continue;
      if (before !== undefined) seen.gaps.push(now - before);
      seen.changes.set(name, now);
    }
  }).observe(body, { subtree: true, childList: true, characterData: true, attributes: true });
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) seen.longTasks.push(duration);
  }).observe({ entryTypes: ["longtask"] });
});

const metrics = async () => {
  const { metrics: all } = await session.send("Performance.getMetrics");
  return Object.fromEntries(all.map(({ name, value }) => [name, value]));
};
const quantile = (values, share) => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null;
};

let first = await metrics();
let since = Date.now();
answer(opened);
for await (const command of createInterface({ input: process.stdin })) {
  if (command === "begin") {
    first = await metrics();
    since = Date.now();
    await page.evaluate(() => {
      const seen = window.thalwegSeen;
      seen.gaps.length = seen.longTasks.length = 0;
    });
    answer({ ...opened, ...read });
  } else if (command === "report") {
    const [now, seen] = [await metrics(), await page.evaluate(() => ({ ...window.thalwegSeen, changes: null }))];
    const seconds = (Date.now() - since) / 1000;
    answer({
      live: await page.getByText("Live", { exact: true }).isVisible(),
      changes: seen.gaps.length,
      gap_p50_ms: quantile(seen.gaps, 0.5),
      gap_p99_ms: quantile(seen.gaps, 0.99),
      gap_max_ms: quantile(seen.gaps, 1),
      long_tasks: seen.longTasks.length,
      longest_task_ms: quantile(seen.longTasks, 1) ?? 0,
      cpu_percent: (100 * (now.TaskDuration - first.TaskDuration)) / seconds,
      heap_mib: now.JSHeapUsedSize / 2 ** 20,
    });
  } else break;
}
await browser.close();
