// A destination that is really slow: each update reads the whole table. The advisor names the index that is missing, creates
// it, says that it helped, and drops it again.
import { expect, test } from "@playwright/test";
import { patience } from "../../environment/patience.ts";
import { RUN } from "../../environment/stack.ts";
import { stock } from "../../environment/stock.ts";
import { AdvisorScreen } from "../../screens/advisor-screen.ts";
import { StreamScreen } from "../../screens/stream-screen.ts";

// Without a key the table's transactions come one after the other: those behind wait for the one that looks for its rows.
const SLOW =
  /Transactions wait for one another|All appliers are busy|has no index|statements at the destination|transactions that wait for one another/;
const INDEX = "stock_thalweg_key";
const indexes = () =>
  stock.atDestination(
    "SELECT indexrelid::regclass || CASE WHEN indisvalid THEN '' ELSE ' (invalid)' END FROM pg_index WHERE indrelid = 'stock'::regclass",
  );

test("a missing index is named, created with its SQL, found to help, and dropped by Undo", async ({
  page,
  request,
}) => {
  const advisor = new AdvisorScreen(page);
  const stream = new StreamScreen(page);
  const id = await stock.replicate(request);
  // Several times what the fastest machine applies so: where it keeps up, there is no bottleneck.
  const load = stock.load(240, patience(230));

  await stream.open(stock.name);
  await expect(stream.component("Appliers")).toContainText("Bottleneck");
  await expect(advisor.verdict).toContainText(SLOW);
  await advisor.takeSnapshot(`without index ${RUN}`, 5);
  const finding = advisor.finding(/public\.stock has no index for its key at the destination/);
  await expect(
    page.getByText("Expected gain:").or(page.getByText("found nothing to cure")).first(),
  ).toBeVisible();
  const told = (await page.getByRole("main").innerText()).replaceAll("\n", " | ");
  await expect(finding, told).toContainText("causes the bottleneck");

  await finding.getByRole("button", { name: "Apply" }).click();
  const dialog = page.getByRole("dialog", { name: "Apply the cure" });
  await expect(dialog.getByRole("region", { name: /^SQL that runs at/ })).toHaveText(
    `CREATE INDEX CONCURRENTLY "${INDEX}" ON "public"."stock" ("id");`,
  );
  await dialog.getByLabel("Measure again after").fill("5");
  await page.screenshot({ path: test.info().outputPath("apply.png") });
  await dialog.getByRole("button", { name: "Apply", exact: true }).click();
  const outcome = finding.getByRole("status", { name: "Outcome of the cure" });
  await expect(outcome).toContainText(/Applying|Measuring|It helped/);
  await page.screenshot({ path: test.info().outputPath("applying.png"), fullPage: true });
  await expect(outcome).toContainText("It helped");
  await expect(finding.getByRole("link", { name: "Compare before and after" })).toBeVisible();
  await page.screenshot({ path: test.info().outputPath("helped.png"), fullPage: true });
  expect(await indexes()).toBe(INDEX);

  await finding.getByRole("button", { name: "Undo" }).click();
  const undo = page.getByRole("dialog", { name: "Undo the cure" });
  await expect(undo.getByRole("region", { name: /^SQL that runs at/ })).toContainText(INDEX);
  await undo.getByRole("button", { name: "Undo", exact: true }).click();
  await expect(finding.getByRole("button", { name: "Apply" })).toBeVisible();
  expect(await indexes()).toBe("");
  await load.stop();
  await stock.forget(request, id);
});
