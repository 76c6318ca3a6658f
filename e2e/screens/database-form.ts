import { expect, type Locator, type Page } from "@playwright/test";
import { stack } from "../environment/stack.ts";

export interface DatabaseEntry {
  name: string;
  host: string;
  port: number;
  dbname: string;
  user: string;
  password: string;
}

/** The drawer that registers a database. */
export class DatabaseForm {
  readonly drawer: Locator;
  readonly test: Locator;
  readonly save: Locator;
  /** Alert of a failed test or a refused save. */
  readonly problem: Locator;

  constructor(page: Page) {
    this.drawer = page.getByRole("dialog", { name: "Add database" });
    this.test = this.drawer.getByRole("button", { name: "Test connection" });
    this.save = this.drawer.getByRole("button", { name: "Add database" });
    this.problem = this.drawer.getByRole("alert");
  }

  async fill(entry: DatabaseEntry): Promise<void> {
    await this.drawer.getByLabel("Name", { exact: true }).fill(entry.name);
    await this.drawer.getByLabel("Host").fill(entry.host);
    await this.drawer.getByLabel("Port").fill(String(entry.port));
    await this.drawer.getByLabel("Database", { exact: true }).fill(entry.dbname);
    await this.drawer.getByLabel("User", { exact: true }).fill(entry.user);
    await this.drawer.getByLabel("Password", { exact: true }).fill(entry.password);
  }

  async expectConnected(): Promise<void> {
    await this.test.click();
    await expect(this.drawer.getByText(/^Connected to PostgreSQL \d+/)).toBeVisible();
  }

  async add(entry: DatabaseEntry): Promise<void> {
    await this.fill(entry);
    await this.expectConnected();
    await this.save.click();
    await expect(this.drawer).toBeHidden();
  }
}

type Named = Pick<DatabaseEntry, "name" | "dbname">;

/** Registers a database of the stack's source and one of its destination. */
export async function registerPair(page: Page, source: Named, destination: Named): Promise<void> {
  const form = new DatabaseForm(page);
  await page.goto("/databases");
  for (const { name, dbname, cluster } of [
    { ...source, cluster: stack.source },
    { ...destination, cluster: stack.destination },
  ]) {
    await page.getByRole("button", { name: "Add database" }).first().click();
    const { host, port, thalweg: password } = cluster;
    await form.add({ name, dbname, host, port, user: "thalweg", password });
    await expect(page.getByRole("link", { name, exact: true })).toBeVisible();
  }
}
