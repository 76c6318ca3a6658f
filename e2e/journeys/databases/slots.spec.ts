// Slots of real servers: the demo stream's own, and one that a lost stream has left behind.
import { expect, test } from "@playwright/test";
import { sql } from "../../environment/postgres.ts";
import { RUN, stack } from "../../environment/stack.ts";
import { Shell } from "../../screens/shell.ts";

const orphan = `thalweg_left${RUN}`;
const drop = `SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = '${orphan}'`;

test.afterAll(() => sql(stack.source, "demo", drop));

test("an orphan is found and dropped; a stream's slot stays", async ({ page }) => {
  await sql(stack.source, "demo", `SELECT pg_create_logical_replication_slot('${orphan}', 'pgoutput')`);
  const shell = new Shell(page);
  await page.goto("/");
  await shell.open("Slots");
  const table = page.getByRole("table", { name: `Slots of ${stack.source.host}:${stack.source.port}` });

  const own = table.getByRole("row").filter({ hasText: stack.demo.stream });
  await expect(own).toContainText(/pid \d+/);
  await expect(own).toContainText("Reserved");
  await expect(own.getByRole("button", { name: /Drop/ })).toHaveCount(0);

  const left = table.getByRole("row").filter({ hasText: orphan });
  await expect(left).toContainText("Orphan");
  await expect(left).toContainText("nobody");
  await expect(left, "the demo's load makes it grow").toContainText(/Lost in .+ at this rate/);

  await left.getByRole("button", { name: `Drop ${orphan}` }).click();
  const dialog = page.getByRole("dialog", { name: "Drop slot" });
  await dialog.getByLabel(/to confirm/).fill(orphan);
  await dialog.getByRole("button", { name: "Drop" }).click();
  await expect(dialog).toBeHidden();
  await expect(left).toHaveCount(0);
  const there = `SELECT count(*) FROM pg_replication_slots WHERE slot_name = '${orphan}'`;
  expect(await sql(stack.source, "demo", there)).toBe("0");

  await shell.open("Audit");
  const entry = page.getByRole("row").filter({ hasText: "Replication slot dropped" }).first();
  await expect(entry).toContainText(stack.demo.source);
});
