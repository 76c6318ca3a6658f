// One stream, two destinations: one of them goes away and comes back, the other does not notice.
import { expect, test } from "@playwright/test";
import { sql } from "../../environment/postgres.ts";
import { RUN, stack } from "../../environment/stack.ts";
import { DatabaseForm } from "../../screens/database-form.ts";
import { Shell } from "../../screens/shell.ts";
import { StreamScreen } from "../../screens/stream-screen.ts";
import { Wizard } from "../../screens/wizard.ts";

test.describe.configure({ mode: "serial" });

const STREAM = `ledger to many ${RUN}`;
const ledger = { dbname: `ledger_${RUN}`, name: `ledger ${RUN}` };
const ends = [
  { dbname: `archive_${RUN}`, name: `archive ${RUN}` },
  { dbname: `reports_${RUN}`, name: `reports ${RUN}` },
] as const;
const [archive, reports] = ends;

const atSource = (text: string) => sql(stack.source, ledger.dbname, text);
const entries = (end: { dbname: string }) =>
  sql(stack.destination, end.dbname, "SELECT count(*) || ' ' || coalesce(sum(amount), 0) FROM entry");
const write = (first: number, last: number) =>
  atSource(`INSERT INTO entry SELECT n, n % 97, md5(n::text) FROM generate_series(${first}, ${last}) n`);

async function expectSame(end: { dbname: string }): Promise<void> {
  const wanted = await atSource("SELECT count(*) || ' ' || sum(amount) FROM entry");
  await expect.poll(() => entries(end), { message: `entries of ${end.dbname}` }).toBe(wanted);
}

/** Its server turns everybody away, and ends who is there. */
async function detach(end: { dbname: string }): Promise<void> {
  await sql(stack.destination, "postgres", `ALTER DATABASE ${end.dbname} CONNECTION LIMIT 0`);
  await sql(
    stack.destination,
    "postgres",
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${end.dbname}'`,
  );
}

const attach = (end: { dbname: string }) =>
  sql(stack.destination, "postgres", `ALTER DATABASE ${end.dbname} CONNECTION LIMIT -1`);

test.beforeAll(async () => {
  const { user } = stack.application;
  await sql(stack.source, "postgres", `CREATE DATABASE ${ledger.dbname} OWNER ${user}`);
  await sql(
    stack.source,
    ledger.dbname,
    "CREATE TABLE entry (id bigint PRIMARY KEY, amount int NOT NULL, note text NOT NULL)",
    stack.application,
  );
  await sql(stack.source, "postgres", `GRANT CREATE ON DATABASE ${ledger.dbname} TO thalweg`);
  for (const end of ends)
    await sql(stack.destination, "postgres", `CREATE DATABASE ${end.dbname} OWNER thalweg`);
  await write(1, 500);
});

test.afterAll(async () => {
  await attach(reports);
});

test("the wizard makes a stream with two destinations, and both get the rows", async ({ page }) => {
  const form = new DatabaseForm(page);
  await page.goto("/databases");
  const databases = [
    { ...ledger, cluster: stack.source },
    ...ends.map((end) => ({ ...end, cluster: stack.destination })),
  ];
  for (const { name, dbname, cluster } of databases) {
    await page.getByRole("button", { name: "Add database" }).first().click();
    const { host, port, thalweg } = cluster;
    await form.add({ name, dbname, host, port, user: "thalweg", password: thalweg });
    await expect(page.getByRole("link", { name, exact: true })).toBeVisible();
  }

  const wizard = new Wizard(page);
  await page.goto("/streams/new");
  await wizard.choose(ledger.name);
  await wizard.goOnTo("Destination");
  for (const end of ends) await wizard.choose(end.name);
  await page.screenshot({ path: test.info().outputPath("destinations.png") });
  await wizard.goOnTo("Tables");
  await wizard.goOnTo("Preflight");
  for (const end of ends) {
    await expect(page.getByRole("region", { name: `Checks at the destination ${end.name}` })).toBeVisible();
  }
  await expect(wizard.check("Output plugin")).toContainText(/thalweg_output|pgoutput/);
  await wizard.goOnTo("Parameters");
  await wizard.goOnTo("Review");
  await page.getByLabel("Stream name").fill(STREAM);
  await wizard.create.click();
  await expect(new Shell(page).heading(STREAM)).toBeVisible();

  const stream = new StreamScreen(page);
  await stream.expectPhase(STREAM, "Replicating");
  await write(501, 600);
  for (const end of ends) await expectSame(end);
  await expect(stream.component("Capture")).toContainText(/thalweg_output|pgoutput/);
  await expect(stream.destination(archive.name)).toContainText("Replicating");
  await page.screenshot({ path: test.info().outputPath("fan-out.png"), fullPage: true });

  await page.getByRole("button", { name: `Parameters of ${archive.name}` }).click();
  const dialog = page.getByRole("dialog", { name: `Parameters of ${archive.name}` });
  await dialog.getByRole("button", { name: /^Show \d+ advanced/ }).click();
  await dialog.getByRole("textbox", { name: "queue_spill_limit_mb" }).fill("2048");
  await page.screenshot({ path: test.info().outputPath("parameters.png") });
  await dialog.getByRole("button", { name: "Save parameters" }).click();
  await expect(stream.destination(archive.name)).toContainText(/of 2(\.0+)?\sGiB/u);
  await expect(stream.destination(reports.name)).toContainText(/of 10(\.0+)?\sGiB/u);

  await stream.tab(/^History/);
  await page.getByRole("combobox", { name: "Destination whose path is charted" }).click();
  await page.getByRole("option", { name: reports.name }).click();
  for (const what of ["Applied", "Latency p99", "Replication lag"])
    await expect(page.getByText(`${what}, by destination`)).toBeVisible();
  await page.screenshot({ path: test.info().outputPath("history.png"), fullPage: true });
});

test("a destination that is away holds up nobody; back again, it catches up", async ({ page }) => {
  const stream = new StreamScreen(page);
  await stream.open(STREAM);
  await detach(reports);
  await write(10_001, 40_000);
  await expectSame(archive);
  const away = stream.destination(reports.name);
  await expect(away).toContainText("Retrying");
  const backlog = away.getByRole("meter", { name: `Backlog of ${reports.name} on disk` });
  await expect(backlog).toHaveAttribute("aria-valuetext", /^(?!0\s)[\d.]+\s\S+ of 10/u);
  const told = page.getByRole("alert").filter({ hasText: `${reports.name}: ` });
  await expect(told).toBeVisible();
  await expect(away).toContainText("See the fix at the top of the page.");
  await expect(stream.destination(archive.name)).toContainText("Replicating");
  await page.screenshot({ path: test.info().outputPath("away.png"), fullPage: true });
  expect(await entries(reports)).toMatch(/^600 /);

  await attach(reports);
  await away.getByRole("button", { name: `Retry ${reports.name}` }).click();
  await expectSame(reports);
  await expect(away).toContainText("Replicating");
  await expect(told).toHaveCount(0);
});

test("an operator drops it by name, and the other goes on", async ({ page }) => {
  const stream = new StreamScreen(page);
  await stream.open(STREAM);
  await page.getByRole("button", { name: `Drop ${reports.name}` }).click();
  const dialog = page.getByRole("dialog", { name: "Drop destination" });
  await dialog.getByLabel(`Type ${reports.name} to confirm`).fill(reports.name);
  await dialog.getByRole("button", { name: "Drop", exact: true }).click();
  await expect(stream.destination(reports.name)).toHaveCount(0);
  await write(50_001, 50_100);
  await expectSame(archive);
  expect(await entries(reports)).not.toBe(await entries(archive));

  await stream.action("Delete").click();
  const deletion = page.getByRole("dialog", { name: "Delete stream" });
  await deletion.getByLabel(`Type ${STREAM} to confirm`).fill(STREAM);
  await deletion.getByRole("button", { name: "Delete", exact: true }).click();
  await expect(page.getByRole("link", { name: STREAM, exact: true })).toHaveCount(0);
});
