// A table without a key, which its owner will not change: somebody takes its inserts and says so in the wizard.
import { expect, test } from "@playwright/test";
import { sql } from "../../environment/postgres.ts";
import { RUN, stack } from "../../environment/stack.ts";
import { registerPair } from "../../screens/database-form.ts";
import { StreamScreen } from "../../screens/stream-screen.ts";
import { Wizard } from "../../screens/wizard.ts";

test.describe.configure({ mode: "serial" });

const source = { dbname: `journal_${RUN}`, name: `journal ${RUN}` };
const destination = { dbname: `journals_${RUN}`, name: `journals ${RUN}` };
const stream = `journal to journals ${RUN}`;
const atSource = (text: string) => sql(stack.source, source.dbname, text);
const entries = () => sql(stack.destination, destination.dbname, "SELECT count(*), min(line) FROM entries");

test.beforeAll(async () => {
  await sql(stack.source, "postgres", `CREATE DATABASE ${source.dbname} OWNER thalweg`);
  await sql(stack.destination, "postgres", `CREATE DATABASE ${destination.dbname} OWNER thalweg`);
  await atSource(`
    CREATE TABLE entries (at int, line text);
    INSERT INTO entries SELECT n, 'entry' FROM generate_series(1, 100) n;
    ALTER TABLE entries OWNER TO thalweg`);
});

test("the wizard asks for the consent, and the preflight says what it means", async ({ page }) => {
  await registerPair(page, source, destination);

  const wizard = new Wizard(page);
  await page.goto("/streams/new");
  await wizard.choose(source.name);
  await wizard.goOnTo("Destination");
  await wizard.choose(destination.name);
  await wizard.goOnTo("Tables");
  await expect(wizard.step("Tables").getByRole("alert")).toContainText("public.entries");
  await expect(wizard.next).toBeDisabled();
  await wizard.giveUpUpdates("public.entries");
  await expect(wizard.tablesChosen).toContainText("1 table will be replicated");

  await wizard.goOnTo("Preflight");
  await expect(wizard.check("Keys of tables")).toContainText("Passed");
  await expect(wizard.check("Tables with inserts only")).toContainText(
    "updates and deletes stay at the source",
  );
  await wizard.goOnTo("Parameters");
  await wizard.goOnTo("Review");
  await expect(wizard.step("Review")).toContainText(
    "public.entries: updates and deletes stay at the source.",
  );
  await page.getByLabel("Stream name").fill(stream);
  await wizard.create.click();
  await new StreamScreen(page).expectPhase(stream, "Replicating");
});

test("its inserts and truncates come, its updates and deletes do not", async ({ page }) => {
  await atSource(`
    UPDATE entries SET line = 'a change' WHERE at = 1;
    DELETE FROM entries WHERE at = 2;
    INSERT INTO entries VALUES (101, 'entry')`);
  await expect.poll(entries).toBe("101|entry");

  const screen = new StreamScreen(page);
  await screen.open(stream);
  await screen.tab(/^Tables/);
  await expect(page.getByRole("row", { name: /public\.entries/ })).toContainText("inserts only");

  await atSource("TRUNCATE entries; INSERT INTO entries VALUES (1, 'the first')");
  await expect.poll(entries).toBe("1|the first");
});
