// A destination that is really slow: a trigger there sleeps for every change. The advisor names it, and who cures it where.
import { expect, test } from "@playwright/test";
import { patience } from "../../environment/patience.ts";
import { sql } from "../../environment/postgres.ts";
import { RUN, stack } from "../../environment/stack.ts";
import { AdvisorScreen } from "../../screens/advisor-screen.ts";
import { StreamScreen } from "../../screens/stream-screen.ts";

// All of the load's transactions change one row: the others wait for the one that the trigger delays.
const SLOW = /on (statements at the destination|transactions that wait for one another)/;
const atDestination = (text: string) => sql(stack.destination, "demo", text);

test.afterAll(async () => {
  await atDestination("DROP FUNCTION IF EXISTS audit_slowly() CASCADE");
});

test("a slow trigger is named as the bottleneck; its cure is applied, checked and exported", async ({
  page,
}) => {
  const advisor = new AdvisorScreen(page);
  const stream = new StreamScreen(page);
  await atDestination(`
    CREATE FUNCTION audit_slowly() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_sleep(0.05); RETURN NEW; END';
    CREATE TRIGGER audit_slowly BEFORE UPDATE ON pgbench_accounts FOR EACH ROW EXECUTE FUNCTION audit_slowly();
    ALTER TABLE pgbench_accounts ENABLE ALWAYS TRIGGER audit_slowly`);

  await stream.open(stack.demo.stream);
  await expect(stream.component("Appliers")).toContainText("Bottleneck");
  await expect(advisor.verdict).toContainText(
    "A trigger fires for every change that is applied to public.pgbench_accounts",
  );

  // One that looks back to before the trigger sees too little of it.
  const finding = advisor.finding(/trigger fires for every change/);
  let [before, first] = ["", 0];
  await expect(async () => {
    await stream.open(stack.demo.stream);
    before = `slow ${RUN} after ${first}`;
    first = await advisor.takeSnapshot(before, 5);
    await expect(finding).toContainText("pgbench_accounts", { timeout: patience(5_000) });
  }).toPass();
  await expect(advisor.stage("Appliers")).toContainText("Bottleneck");
  await expect(finding.getByRole("table", { name: /^Evidence/ })).toContainText("EVENT: EXECUTE");
  await expect(finding).toContainText(
    `Run it at warehouse (127.0.0.1:${stack.demo.destinationPort}, database demo)`,
  );
  const cure = await finding.getByRole("region", { name: /^SQL to run at/ }).innerText();
  expect(cure).toContain("audit_slowly");
  await atDestination(cure);
  await finding.getByRole("button", { name: "Check whether it helped" }).click();
  const outcome = finding.getByRole("status", { name: "Outcome of the cure" });
  await expect(outcome).toContainText("It helped");
  await page.screenshot({ path: test.info().outputPath("checked.png"), fullPage: true });

  await stream.open(stack.demo.stream);
  await expect(advisor.verdict).toContainText("No bottleneck");
  const after = `cured ${RUN}`;
  const second = await advisor.takeSnapshot(after, 5);

  await page.goto("/advisor");
  for (const name of [before, after]) await page.getByRole("checkbox", { name: `Compare ${name}` }).check();
  await page.getByRole("button", { name: "Compare the selected runs" }).click();
  await expect(page).toHaveURL(`/advisor/compare?before=${first}&after=${second}`);
  await expect(page.getByRole("region", { name: "Bottlenecks" })).toContainText(SLOW);
  const rate = page
    .getByRole("table", { name: "Statistics of both runs" })
    .getByRole("row", { name: /\bMESSAGE RATE/ });
  await expect(rate).toContainText("better");

  await page.goto(`/advisor/runs/${first}`);
  expect(await advisor.export(/six tables/)).toMatch(/APPLY SERVER/);
  expect(await advisor.export(/HTML/)).toContain("APPLY SERVER");
});
