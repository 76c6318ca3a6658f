import type { Locator, Page } from "@playwright/test";

export class LoginScreen {
  readonly name: Locator;
  readonly password: Locator;
  readonly submit: Locator;
  readonly problem: Locator;
  readonly code: Locator;
  readonly verifies: Locator;

  constructor(page: Page) {
    this.name = page.getByLabel("User name");
    this.password = page.getByLabel("Password", { exact: true });
    this.submit = page.getByRole("button", { name: "Log in" });
    this.problem = page.getByRole("alert");
    this.code = page.getByLabel("Code", { exact: true });
    this.verifies = page.getByRole("button", { name: "Verify" });
  }

  async logIn(name: string, password: string): Promise<void> {
    await this.name.fill(name);
    await this.password.fill(password);
    await this.submit.click();
  }

  /** The second step, where there is one. */
  async verify(code: string): Promise<void> {
    await this.code.fill(code);
    await this.verifies.click();
  }
}
