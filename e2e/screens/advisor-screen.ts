import { readFile } from "node:fs/promises";
import { expect, type Locator, type Page } from "@playwright/test";

/** The advisor's page, a run's page, and the same path on a stream's page. */
export class AdvisorScreen {
  readonly page: Page;
  readonly verdict: Locator;
  readonly path: Locator;

  constructor(page: Page) {
    this.page = page;
    this.verdict = page.getByRole("status", { name: "Verdict" });
    this.path = page.getByRole("list", { name: "Path", exact: true });
  }

  stage(name: string): Locator {
    return this.path.getByRole("listitem", { name, exact: true });
  }

  /** Takes a snapshot over the last so many seconds; ends on its page and answers its id. */
  async takeSnapshot(name: string, seconds: number): Promise<number> {
    await this.page.getByRole("button", { name: "Take a snapshot with options" }).click();
    const dialog = this.page.getByRole("dialog", { name: "Take a snapshot" });
    await dialog.getByLabel("Seconds to analyse").fill(String(seconds));
    await dialog.getByLabel("Name").fill(name);
    await dialog.getByRole("button", { name: "Take the snapshot" }).click();
    await expect(this.page.getByRole("heading", { level: 1, name })).toBeVisible();
    return Number(new URL(this.page.url()).pathname.split("/").at(-1));
  }

  finding(title: RegExp): Locator {
    return this.page.getByRole("list", { name: "Findings" }).getByRole("listitem", { name: title });
  }

  /** Content of an exported file of the run. */
  async export(label: RegExp): Promise<string> {
    await this.page.getByRole("button", { name: "Export" }).click();
    const download = this.page.waitForEvent("download");
    await this.page.getByRole("menuitem", { name: label }).click();
    return readFile(await (await download).path(), "utf8");
  }
}
