// The whole life of a stream between a newcomer's own databases, in the order in which it is lived.
import { expect, type Page, test } from "@playwright/test";
import { sql } from "../../environment/postgres.ts";
import { bothSides, CUSTOMERS, ORDERS, sales } from "../../environment/sales.ts";
import { stack } from "../../environment/stack.ts";
import { DatabaseForm } from "../../screens/database-form.ts";
import { Shell } from "../../screens/shell.ts";
import { StreamScreen } from "../../screens/stream-screen.ts";
import { Wizard } from "../../screens/wizard.ts";

test.describe.configure({ mode: "serial" });

async function expectEqualSides(tables = sales.tables): Promise<void> {
  for (const table of tables) {
    await expect
      .poll(
        async () => {
          const { source, destination } = await bothSides(table);
          return source.digest === destination.digest ? "equal" : source.difference(destination);
        },
        { message: `sales.${table} on both sides`, intervals: [250, 500, 1000] },
      )
      .toBe("equal");
  }
}

async function slotsAndPublications(streamId: string): Promise<string> {
  return sales.atSource(`
    SELECT (SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'thalweg_${streamId}') || ' slots, '
        || (SELECT count(*) FROM pg_publication WHERE pubname = 'thalweg_${streamId}') || ' publications'`);
}

async function setParallelism(page: Page, appliers: number): Promise<void> {
  const stream = new StreamScreen(page);
  await stream.tab(/^Parameters/);
  await page.getByRole("textbox", { name: "parallelism" }).fill(String(appliers));
  await expect(page.getByText("1 changed")).toBeVisible();
  await page.getByRole("button", { name: "Save parameters" }).click();
  await expect(page.getByText("Nothing changed")).toBeVisible();
  await stream.tab(/^Now/);
}

test.beforeAll(async () => {
  await sales.create();
});

test("registers a source and a destination", async ({ page }) => {
  const form = new DatabaseForm(page);
  await page.goto("/databases");
  const sides = [
    { ...sales.source, cluster: stack.source },
    { ...sales.destination, cluster: stack.destination },
  ];
  for (const { name, dbname, cluster } of sides) {
    await page.getByRole("button", { name: "Add database" }).first().click();
    await form.add({
      name,
      dbname,
      host: cluster.host,
      port: cluster.port,
      user: "thalweg",
      password: cluster.thalweg,
    });
    await expect(page.getByRole("link", { name, exact: true })).toBeVisible();
  }

  await page.getByRole("link", { name: sales.source.name, exact: true }).click();
  await expect(new Shell(page).heading(sales.source.name)).toBeVisible();
  await page.getByRole("button", { name: "Test connection" }).click();
  await expect(page.getByText(/^Connected to PostgreSQL \d+/)).toBeVisible();
  await expect(page.getByRole("table", { name: "Tables of the database" })).toContainText("customers");
});

test("the wizard finds a table without a key, shows its cure, and creates the stream", async ({ page }) => {
  const wizard = new Wizard(page);
  await page.goto("/");
  await page.getByRole("link", { name: "Create stream" }).first().click();
  await wizard.choose(sales.source.name);
  await wizard.goOnTo("Destination");
  await expect(page.getByRole("checkbox", { name: sales.source.name, exact: true })).toBeDisabled();
  await wizard.choose(sales.destination.name);
  await wizard.goOnTo("Tables");

  await wizard.pattern("Include", 1, sales.schema, "*");
  await wizard.pattern("Exclude", 1, sales.schema, "scr*");
  for (const table of sales.tables) {
    await expect(page.getByRole("checkbox", { name: `Replicate sales.${table}` })).toBeChecked();
  }
  await expect(page.getByRole("checkbox", { name: "Replicate sales.scratch" })).not.toBeChecked();
  await expect(wizard.tablesChosen).toContainText("2 tables will be replicated");
  await expect(wizard.step("Tables").getByRole("alert")).toContainText("sales.visits");

  await wizard.goOnTo("Preflight");
  const keys = wizard.check("Keys of tables");
  await expect(keys).toContainText("Failed");
  await expect(keys).toContainText("sales.visits");
  await expect(keys).toContainText("Cure:");
  await expect(wizard.next).toBeDisabled();

  const cure = await keys.getByRole("region", { name: /^SQL to run at the source / }).innerText();
  expect(cure).toContain("REPLICA IDENTITY FULL");
  await sql(stack.source, sales.source.dbname, cure);
  await wizard.runPreflightAgain();
  await expect(keys).toContainText("Passed");

  await expect(wizard.check("What the copy leaves out")).toContainText("values of sequences: sales.orders");
  await expect(wizard.next).toBeDisabled();
  await wizard.accept("What the copy leaves out");

  await wizard.goOnTo("Parameters");
  await expect(page.getByRole("textbox", { name: "parallelism" })).toHaveValue(/^4/);
  await page.getByRole("button", { name: /^Show \d+ advanced/ }).click();
  await page.getByRole("textbox", { name: "copy_range_rows" }).fill("50000");
  await wizard.goOnTo("Review");
  await page.getByLabel("Stream name").fill(sales.stream);
  const call = wizard.step("Review").getByRole("region", { name: "POST /api/v1/streams" });
  for (const part of ["curl", "/api/v1/streams", sales.stream, '"scr*"', "copy_range_rows", "50000"]) {
    await expect(call).toContainText(part);
  }
  await wizard.create.click();
  await expect(new Shell(page).heading(sales.stream)).toBeVisible();
});

/** As the console writes whole numbers. */
const exactly = (count: number) => count.toLocaleString("en-US").replaceAll(",", " ");

test("the finished initial copy is a line that opens, and its rows are the source's", async ({ page }) => {
  const stream = new StreamScreen(page);
  await stream.open(sales.stream);
  await stream.expectPhase(sales.stream, "Replicating");
  await expect(stream.copy, "a finished copy folds away to one line").toContainText("Last copy finished");
  await expect(stream.copy.getByRole("table")).toHaveCount(0);
  await stream.copy.getByRole("button", { name: /^Show \d+ tables?/ }).click();
  await expect(stream.copy.getByRole("row", { name: /sales\.orders/ })).toContainText(exactly(ORDERS));
  await expect(stream.copy.getByRole("row", { name: /sales\.customers/ })).toContainText(exactly(CUSTOMERS));
  await expectEqualSides();
  expect(await sales.atDestination("SELECT to_regclass('sales.scratch') IS NULL")).toBe("t");
});

test("changes under load flow through every component and arrive row by row", async ({ page }) => {
  const stream = new StreamScreen(page);
  await stream.open(sales.stream);
  const load = sales.load(200, 120);
  try {
    for (const component of ["Capture", "Queue", "Apply reader", "Appliers"] as const) {
      await expect
        .poll(() => stream.lcrRate(component), { message: `LCR/s of ${component}` })
        .toBeGreaterThan(20); // of 200, which a slow disk does not let the source commit
    }
    await expect(stream.component("Coordinator")).toContainText(/[1-9][\d.]*\s*k?\s*txn\/s/u);
    // A state is what it is at the instant of the sample: between two transactions capture waits.
    await expect(stream.component("Capture")).toContainText(/Capturing changes|Waiting for WAL/);
    await page.screenshot({ path: test.info().outputPath("under-load.png") });

    await stream.tab(/^Tables/);
    const orders = page.getByRole("table", { name: "Tables" }).getByRole("row", { name: /sales\.orders/ });
    await expect.poll(async () => Number((await orders.innerText()).replace(/\D+/g, ""))).toBeGreaterThan(0);
  } finally {
    await load.stop();
  }
  await expectEqualSides();
  expect(
    Number(await sales.atDestination("SELECT count(*) FROM sales.orders WHERE note = 'changed under load'")),
  ).toBeGreaterThan(0);
});

test("parallelism is raised while changes flow", async ({ page }) => {
  const stream = new StreamScreen(page);
  await stream.open(sales.stream);
  await expect(stream.appliers).toHaveCount(4);
  const load = sales.load(100, 120);
  try {
    await setParallelism(page, 6);
    await expect(stream.appliers).toHaveCount(6);
    await expect(stream.header(sales.stream)).toContainText("Replicating");
    await expect
      .poll(() => stream.lcrRate("Appliers"), { message: "LCR/s of the appliers" })
      .toBeGreaterThan(0);
  } finally {
    await load.stop();
  }
  await expectEqualSides();
});

test("stopped, nothing arrives; started again, everything does", async ({ page }) => {
  const stream = new StreamScreen(page);
  await stream.open(sales.stream);
  await stream.action("Stop").click();
  await stream.confirm("Stop").click();
  await stream.expectStopped(sales.stream);
  await expect(page.getByText("Healthy")).toBeHidden();
  await expect(stream.action("Stop")).toBeDisabled();

  await sales.atSource(`
    UPDATE sales.customers SET name = 'Changed while stopped' WHERE id <= 10;
    INSERT INTO sales.visits (customer_id, page) VALUES (1, '/while-stopped');
    DELETE FROM sales.orders WHERE id = (SELECT max(id) FROM sales.orders);`);
  const arrived = "SELECT count(*) FROM sales.customers WHERE name = 'Changed while stopped'";
  expect(await sales.atDestination(arrived)).toBe("0");

  await stream.action("Start").click();
  await stream.expectPhase(sales.stream, "Replicating");
  await expectEqualSides();
  expect(await sales.atDestination(arrived)).toBe("10");
});

test("a row in the way raises an alert, which is taken on and ends when the row is gone", async ({
  page,
}) => {
  const stream = new StreamScreen(page);
  await stream.open(sales.stream);
  const { id } = stream;
  const answer = await page.request.patch(`/api/v1/streams/${id}`, {
    headers: { Authorization: `Bearer ${stack.apiToken()}`, "If-Match": "*" },
    data: { parameters: { disable_on_error: false } },
  });
  expect(answer.status(), await answer.text()).toBe(200);
  const customer = (email: string) =>
    `INSERT INTO sales.customers (id, name, email, since) VALUES (900001, 'One too many', '${email}', '2026-01-01')`;
  await sales.atDestination(customer("in-the-way@example.com"));
  await sales.atSource(customer("from-the-source@example.com"));

  const bell = page.getByRole("banner").getByRole("link", { name: /^Alerts: \d+ needs? attention$/ });
  await expect(bell).toBeVisible();
  await bell.click();
  const alert = page.getByRole("article", { name: `The error queue is not empty of ${sales.stream}` });
  await expect(alert).toContainText("1 transaction is parked");
  await alert.getByRole("button", { name: "Acknowledge" }).click();
  const dialog = page.getByRole("dialog", { name: "Acknowledge alert" });
  await dialog.getByLabel("Note").fill("The way is mended tonight.");
  await dialog.getByRole("button", { name: "Acknowledge", exact: true }).click();
  await expect(alert).toContainText("Acknowledged by admin");
  await expect(alert).toContainText("The way is mended tonight.");

  await alert.getByRole("button", { name: "Open stream" }).click();
  await page.getByRole("button", { name: /^Behind transaction/ }).click();
  await expect(page.getByText(/^No transaction waits behind \d+\./)).toBeVisible();
  await page.getByRole("button", { name: /^Open transaction/ }).click();
  const opened = page.getByRole("dialog", { name: /^Transaction \d+/ });
  await expect(opened.getByText("The transaction failed here")).toBeVisible();
  const email = opened.getByRole("row", { name: /^email/ });
  await expect(email).toContainText("differs: from-the-source@example.com");
  await expect(email).toContainText("in-the-way@example.com");
  await expect(opened).toContainText("The destination has one row, found by id.");
  await opened.getByRole("button", { name: "Close" }).click();
  await sales.atDestination("DELETE FROM sales.customers WHERE id = 900001");
  await page.getByRole("button", { name: /^Execute transaction/ }).click();
  await stream.confirm("Execute").click();
  await expectEqualSides(["customers"]);
  await page.goto("/alerts");
  await expect(alert).toHaveCount(0);
  await page.getByRole("tab", { name: "History" }).click();
  await expect(
    page.getByRole("row", { name: new RegExp(`Recovered.*${sales.stream}.*admin`) }),
  ).toBeVisible();
});

test("deleted after its name is typed, the stream leaves nothing at the source", async ({ page }) => {
  const stream = new StreamScreen(page);
  await stream.open(sales.stream);
  const { id } = stream;
  expect(await slotsAndPublications(id)).toBe("1 slots, 1 publications");

  await stream.action("Delete").click();
  const dialog = page.getByRole("dialog", { name: "Delete stream" });
  const confirm = dialog.getByRole("button", { name: "Delete", exact: true });
  await expect(confirm).toBeDisabled();
  await dialog.getByLabel(`Type ${sales.stream} to confirm`).fill(sales.stream);
  await confirm.click();

  await expect(new Shell(page).heading("Overview")).toBeVisible();
  await expect(page.getByRole("link", { name: sales.stream, exact: true })).toHaveCount(0);
  await expect.poll(() => slotsAndPublications(id)).toBe("0 slots, 0 publications");
  // The replicated rows belong to the destination: they stay.
  await expectEqualSides();
});
