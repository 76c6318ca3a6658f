import type { Locator, Page } from "@playwright/test";

export class LoginScreen {
  readonly name: Locator;
  readonly password: Locator;
  readonly submit: Locator;
  readonly problem: Locator;

  constructor(page: Page) {
    this.name = page.getByLabel("User name");
    this.password = page.getByLabel("Password", { exact: true });
    this.submit = page.getByRole("button", { name: "Log in" });
    this.problem = page.getByRole("alert");
  }

  async logIn(name: string, password: string): Promise<void> {
    await this.name.fill(name);
    await this.password.fill(password);
    await this.submit.click();
  }
}
