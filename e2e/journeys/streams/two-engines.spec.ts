// Capture on one engine, apply on another: the wizard places them, the pages show the whole way.
import { expect, test } from "@playwright/test";
import { SecondEngine } from "../../environment/engine.ts";
import { sql } from "../../environment/postgres.ts";
import { RUN, stack } from "../../environment/stack.ts";
import { StreamScreen } from "../../screens/stream-screen.ts";
import { Wizard } from "../../screens/wizard.ts";

const STREAM = `depot to branch ${RUN}`;
const FAR = `far engine ${RUN}`;
const depot = { dbname: `depot_${RUN}`, name: `depot ${RUN}`, cluster: stack.source };
const branch = { dbname: `branch_${RUN}`, name: `branch ${RUN}`, cluster: stack.destination };
const headers = { Authorization: `Bearer ${stack.apiToken()}` };
let far: SecondEngine;
let near: string;

test.beforeAll(async ({ request }) => {
  await sql(stack.source, "postgres", `CREATE DATABASE ${depot.dbname} OWNER ${stack.application.user}`);
  await sql(
    stack.source,
    depot.dbname,
    "CREATE TABLE part (id int PRIMARY KEY, name text NOT NULL); INSERT INTO part SELECT n, 'part' FROM generate_series(1, 50) n",
    stack.application,
  );
  await sql(stack.source, "postgres", `GRANT CREATE ON DATABASE ${depot.dbname} TO thalweg`);
  await sql(stack.destination, "postgres", `CREATE DATABASE ${branch.dbname} OWNER thalweg`);
  for (const { name, dbname, cluster } of [depot, branch]) {
    const login = { user: "thalweg", password: cluster.thalweg };
    const data = { name, dbname, host: cluster.host, port: cluster.port, ...login };
    const answer = await request.post("/api/v1/databases", { headers, data });
    expect(answer.status(), await answer.text()).toBe(201);
  }
  near = (await (await request.get("/api/v1/engines", { headers })).json()).items[0].name;
  far = await SecondEngine.start(request, FAR);
});

test.afterAll(async ({ request }) => {
  await far?.stop(request);
});

test("a stream over two engines is placed by the wizard, shown whole, and deleted at both", async ({
  page,
}) => {
  const wizard = new Wizard(page);
  await page.goto("/streams/new");
  await wizard.choose(depot.name);
  await wizard.goOnTo("Destination");
  await wizard.choose(branch.name);
  await page.getByRole("radio", { name: /^One engine captures, another applies/ }).check();
  for (const [role, engine] of [
    ["Captures", near],
    ["Applies", FAR],
  ] as const) {
    await page.getByRole("combobox", { name: role }).click();
    await page.getByRole("option", { name: engine }).click();
  }
  await page.screenshot({ path: test.info().outputPath("engines.png") });
  await wizard.goOnTo("Tables");
  await wizard.goOnTo("Preflight");
  await wizard.goOnTo("Parameters");
  await wizard.goOnTo("Review");
  await page.getByLabel("Stream name").fill(STREAM);
  await wizard.create.click();

  const stream = new StreamScreen(page);
  await stream.expectPhase(STREAM, "Replicating");
  await sql(stack.source, depot.dbname, "INSERT INTO part SELECT n, 'new' FROM generate_series(51, 60) n");
  await expect.poll(() => sql(stack.destination, branch.dbname, "SELECT count(*) FROM part")).toBe("60");
  await expect(page.getByText(`captured on ${near}, applied on ${FAR}`)).toBeVisible();

  const titles = (section: string) =>
    page
      .getByRole("region", { name: section })
      .getByRole("list")
      .getByRole("listitem")
      .evaluateAll((items) => items.map((item) => item.getAttribute("aria-label")));
  await expect.poll(() => titles("Shared by all destinations")).toEqual(["Capture", "Queue"]);
  await expect
    .poll(() => titles(`Destination ${branch.name}`))
    .toEqual(["Sender", "Receiver", "Apply queue", "Apply reader", "Coordinator", "Appliers"]);
  await page.screenshot({ path: test.info().outputPath("path.png"), fullPage: true });

  await page.goto("/topology");
  const links = page.getByRole("table", { name: "Links" }).getByRole("row").filter({ hasText: STREAM });
  const path = `${STREAM} → ${branch.name}`;
  const way = [
    [`Capture of ${STREAM} on ${near}`, `Queue of ${STREAM} on ${near}`],
    [`Queue of ${STREAM} on ${near}`, `Propagation sender of ${path} on ${near}`],
    [`Propagation sender of ${path} on ${near}`, `Propagation receiver of ${path} on ${FAR}`],
    [`Propagation receiver of ${path} on ${FAR}`, `Queue of ${path} on ${FAR}`],
    [`Queue of ${path} on ${FAR}`, `Apply of ${path} on ${FAR}`],
  ];
  // These five, and the ways from the source and into the destination.
  await expect(links).toHaveCount(way.length + 2);
  for (const [from, to] of way) {
    await expect(links.filter({ hasText: `${from}${to}` })).toHaveCount(1);
  }

  await stream.open(STREAM);
  const { id } = stream;
  await stream.action("Delete").click();
  const deletion = page.getByRole("dialog", { name: "Delete stream" });
  await deletion.getByLabel(`Type ${STREAM} to confirm`).fill(STREAM);
  await deletion.getByRole("button", { name: "Delete", exact: true }).click();
  const gone = async () => (await page.request.get(`/api/v1/streams/${id}`)).status();
  await expect.poll(gone, { message: "the stream is gone at both engines" }).toBe(404);
  const slots = `SELECT count(*) FROM pg_replication_slots WHERE database = '${depot.dbname}'`;
  expect(await sql(stack.source, "postgres", slots)).toBe("0");
});
