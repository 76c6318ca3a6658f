import { expect, type Locator, type Page } from "@playwright/test";

/** The frame of every page: navigation, colours, user menu. */
export class Shell {
  readonly page: Page;

  constructor(page: Page) {
    this.page = page;
  }

  get navigation(): Locator {
    return this.page.getByRole("navigation", { name: "Main" });
  }

  heading(name: string | RegExp): Locator {
    return this.page.getByRole("heading", { level: 1, name });
  }

  async open(
    entry:
      | "Overview"
      | "Topology"
      | "Advisor"
      | "Lab"
      | "Alerts"
      | "Databases"
      | "Slots"
      | "Engines"
      | "Operations"
      | "Audit"
      | "Settings",
  ) {
    await this.navigation.getByRole("link", { name: entry }).click();
    await expect(this.heading(entry)).toBeVisible();
  }

  async logOut(user: string): Promise<void> {
    await this.page.getByRole("button", { name: user }).click();
    await this.page.getByRole("menuitem", { name: "Log out" }).click();
  }

  get colours(): Locator {
    return this.page.getByRole("button", { name: /^Colours:/ });
  }

  async colourScheme(): Promise<string | null> {
    return this.page.locator("html").getAttribute("data-mantine-color-scheme");
  }

  /** Presses Tab until `target` has the focus; fails when the keyboard cannot get there. */
  async tabTo(target: Locator, presses = 60): Promise<void> {
    for (let press = 0; press < presses; press += 1) {
      if (await target.evaluate((element) => element === document.activeElement)) return;
      await this.page.keyboard.press("Tab");
    }
    await expect(target, `not reached by ${presses} presses of Tab`).toBeFocused();
  }
}
