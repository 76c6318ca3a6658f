import { expect, type Locator, type Page } from "@playwright/test";

/** The demo's load, the causes that make it slow, and what the advisor says. */
export class LabScreen {
  readonly page: Page;

  constructor(page: Page) {
    this.page = page;
  }

  async open(): Promise<void> {
    await this.page.goto("/lab");
    await expect(this.page.getByRole("heading", { level: 1, name: "Lab" })).toBeVisible();
  }

  cause(name: "Slow trigger" | "Missing index" | "Lock" | "Slow network"): Locator {
    return this.page.getByRole("article", { name });
  }

  get verdict(): Locator {
    return this.page.getByRole("status", { name: "Verdict" });
  }

  get load(): Locator {
    return this.page.getByRole("slider", { name: "Load, in transactions a second" });
  }

  /** The path's figure, such as "Transactions". */
  figure(label: string): Locator {
    return this.page
      .getByRole("region", { name: "The advisor's verdict" })
      .getByText(label, { exact: true })
      .locator("..");
  }
}
