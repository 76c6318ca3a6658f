// A price that somebody has spoiled: the log tells who changed it from what to what, and gives the SQL that undoes it.
import { expect, type Page, test } from "@playwright/test";
import { expectAccessible } from "../../a11y/accessible.ts";
import { patience } from "../../environment/patience.ts";
import { sql } from "../../environment/postgres.ts";
import { RUN, stack } from "../../environment/stack.ts";
import { registerPair } from "../../screens/database-form.ts";
import { StreamScreen } from "../../screens/stream-screen.ts";
import { Wizard } from "../../screens/wizard.ts";

test.describe.configure({ mode: "serial" });

const source = { dbname: `prices_${RUN}`, name: `prices ${RUN}` };
const destination = { dbname: `price_copies_${RUN}`, name: `price copies ${RUN}` };
const stream = `prices to copies ${RUN}`;
const atSource = (text: string) => sql(stack.source, source.dbname, text);
const PRICE = "SELECT amount, note FROM price WHERE id = 5";

test.beforeAll(async () => {
  await sql(stack.source, "postgres", `CREATE DATABASE ${source.dbname} OWNER thalweg`);
  await sql(stack.destination, "postgres", `CREATE DATABASE ${destination.dbname} OWNER thalweg`);
  await atSource(`
    CREATE TABLE price (id int PRIMARY KEY, amount numeric(8,2), note text);
    INSERT INTO price SELECT n, n * 10, 'as agreed' FROM generate_series(1, 50) n;
    ALTER TABLE price OWNER TO thalweg`);
});

/** Fills in the form of a search for the changes of a price. */
async function askForRow(page: Page, id: string): Promise<void> {
  await page.goto("/databases");
  await page.getByRole("link", { name: `Changes of ${source.name}` }).click();
  await page.getByRole("combobox", { name: "Table", exact: true }).fill("public.price");
  await page.getByRole("combobox", { name: "Column 1" }).fill("id");
  await page.getByRole("textbox", { name: "Value 1" }).fill(id);
  await page.keyboard.press("Escape");
}

test("a stream with log mining comes from the wizard", async ({ page }) => {
  await registerPair(page, source, destination);

  const wizard = new Wizard(page);
  await page.goto("/streams/new");
  await wizard.choose(source.name);
  await page.getByRole("radio", { name: "Log mining" }).check();
  await wizard.goOnTo("Destination");
  await wizard.choose(destination.name);
  await wizard.goOnTo("Tables");
  await expect(wizard.tablesChosen).toContainText("1 table will be replicated");
  await wizard.goOnTo("Preflight");
  await wizard.goOnTo("Parameters");
  await wizard.goOnTo("Review");
  await page.getByLabel("Stream name").fill(stream);
  await wizard.create.click();
  await new StreamScreen(page).expectPhase(stream, "Replicating");
});

test("the log tells what became of a row, and the SQL brings it back", async ({ page }) => {
  await atSource("UPDATE price SET amount = 55 WHERE id = 5");
  await atSource("UPDATE price SET amount = 0, note = NULL WHERE id = 5");
  await atSource("UPDATE price SET amount = 70 WHERE id = 7");

  await askForRow(page, "5");
  const found = page.getByRole("table", { name: "Changes" });
  // A commit of a moment ago may not be mined yet.
  await expect(async () => {
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await expect(found).toContainText("55.00 → 0.00", { timeout: patience(5000) });
  }).toPass();
  await expect(found.getByRole("row")).toHaveCount(1 + 2);
  await expectAccessible(page, "Changes that were found");

  await page.getByRole("button", { name: "Open change 2" }).click();
  const change = page.getByRole("dialog", { name: /^Change 2: UPDATE public\.price/ });
  await expect(change.getByRole("row", { name: /^amount/ })).toContainText("55.00");
  await expect(change).toContainText("The old row comes from the change of the same row");
  await expectAccessible(page, "A change with all of its columns");
  const undo = await change.getByLabel("Undo as SQL").innerText();
  await page.keyboard.press("Escape");

  await atSource(undo);
  expect(await atSource(PRICE)).toBe("55.00|as agreed");
  await expect.poll(() => sql(stack.destination, destination.dbname, PRICE)).toBe("55.00|as agreed");
});

test("what was found goes into a file, and as one script", async ({ page }) => {
  await askForRow(page, "5");
  await page.getByRole("button", { name: "Search", exact: true }).click();
  await expect(page.getByRole("table", { name: "Changes" })).toContainText("id = 5");

  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("link", { name: "Export as CSV" }).click(),
  ]);
  expect(download.suggestedFilename()).toMatch(/\.csv$/);

  await page.getByRole("button", { name: "Undo as SQL" }).click();
  const script = page.getByRole("dialog", { name: "Undo as SQL" });
  await expect(script).toContainText(/BEGIN;[\s\S]*UPDATE "public"."price"[\s\S]*COMMIT;/);
  await expectAccessible(page, "Undo of all that was found");
});

// Other journeys look for the demo's stream first among all.
test("its stream and databases go, and leave nothing at the source", async ({ page }) => {
  const screen = new StreamScreen(page);
  await screen.open(stream);
  await screen.action("Delete").click();
  const dialog = page.getByRole("dialog", { name: "Delete stream" });
  await dialog.getByLabel(`Type ${stream} to confirm`).fill(stream);
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await expect(page.getByRole("link", { name: stream, exact: true })).toHaveCount(0);
  const slots = "SELECT count(*) FROM pg_replication_slots WHERE slot_type = 'physical'";
  await expect.poll(() => atSource(slots)).toBe("0");

  await page.goto("/databases");
  for (const { name } of [source, destination]) {
    await page.getByRole("button", { name: `Delete ${name}` }).click();
    const asked = page.getByRole("dialog", { name: "Delete database" });
    await asked.getByLabel(`Type ${name} to confirm`).fill(name);
    await asked.getByRole("button", { name: "Delete", exact: true }).click();
    await expect(page.getByRole("link", { name, exact: true })).toHaveCount(0);
  }
});
