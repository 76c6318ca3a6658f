import { expect, type Locator, type Page } from "@playwright/test";
import { patience } from "../environment/patience.ts";

const STEPS = ["Source", "Destination", "Tables", "Preflight", "Parameters", "Review"] as const;
type Step = (typeof STEPS)[number];

/** The create-stream wizard. */
export class Wizard {
  private readonly page: Page;
  readonly next: Locator;
  readonly create: Locator;
  /** How many tables the rules take. Beside it stands another status while the catalogue is read. */
  readonly tablesChosen: Locator;

  constructor(page: Page) {
    this.page = page;
    this.next = page.getByRole("button", { name: "Next", exact: true });
    this.create = page.getByRole("button", { name: "Create stream", exact: true });
    this.tablesChosen = this.step("Tables").getByRole("status").filter({ hasText: "will be replicated" });
  }

  step(name: Step): Locator {
    return this.page.getByRole("region", {
      name: `Step ${STEPS.indexOf(name) + 1} of ${STEPS.length}: ${name}`,
    });
  }

  async goOnTo(name: Step): Promise<void> {
    await this.next.click();
    await expect(this.step(name)).toBeVisible();
  }

  /** A source (one), or a destination (one or several). */
  async choose(database: string): Promise<void> {
    const card = (role: "radio" | "checkbox") => this.page.getByRole(role, { name: database, exact: true });
    await card("radio").or(card("checkbox")).click();
  }

  /** Edits the table pattern at `place` (from 1); the first to include is there from the start. */
  async pattern(kind: "Include" | "Exclude", place: number, schema: string, table: string): Promise<void> {
    const label = `${kind} pattern ${place}`;
    const field = this.page.getByRole("textbox", { name: `${label}, schema` });
    // The pattern of public goes away once the source's tables are known, if public has none.
    await expect(async () => {
      if (!(await field.isVisible())) {
        await this.page
          .getByRole("button", { name: `Add ${kind.toLowerCase()} pattern` })
          .click({ timeout: patience(2000) });
      }
      await field.fill(schema, { timeout: patience(2000) });
    }).toPass();
    await this.page.getByRole("textbox", { name: `${label}, table` }).fill(table);
  }

  /** Takes a table's inserts only. */
  async giveUpUpdates(table: string): Promise<void> {
    await this.page.getByRole("checkbox", { name: `Give up updates and deletes of ${table}` }).check();
  }

  check(title: string): Locator {
    return this.step("Preflight").getByRole("listitem").filter({ hasText: title });
  }

  /** Gives the consent that a check asks for, for example to what the copy leaves out of the tables. */
  async accept(title: string): Promise<void> {
    await this.step("Preflight")
      .getByRole("checkbox", { name: `Accept: ${title}` })
      .check();
  }

  async runPreflightAgain(): Promise<void> {
    await this.step("Preflight").getByRole("button", { name: "Run again" }).click();
  }
}
