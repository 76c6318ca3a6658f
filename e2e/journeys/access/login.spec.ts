import { expect, test } from "@playwright/test";
import { stack } from "../../environment/stack.ts";
import { LoginScreen } from "../../screens/login-screen.ts";
import { Shell } from "../../screens/shell.ts";

test.use({ storageState: { cookies: [], origins: [] } });

test("a wrong password is refused with its cure, the right one lets in", async ({ page }) => {
  const login = new LoginScreen(page);
  const shell = new Shell(page);
  await page.goto("/");
  await expect(shell.heading("Log in to Thalweg")).toBeVisible();

  await login.logIn(stack.admin.name, "not the password");
  await expect(login.problem).toContainText("The name or the password is wrong");
  await expect(login.problem).toContainText("Cure:");
  await expect(shell.navigation).toBeHidden();

  await login.logIn(stack.admin.name, stack.admin.password);
  await expect(shell.heading("Overview")).toBeVisible();
});

test("a link into the console survives the login, and logging out closes it", async ({ page }) => {
  const login = new LoginScreen(page);
  const shell = new Shell(page);
  await page.goto("/databases");
  await login.logIn(stack.admin.name, stack.admin.password);
  await expect(shell.heading("Databases")).toBeVisible();

  await shell.logOut(stack.admin.name);
  await expect(login.submit).toBeVisible();
  await page.goto("/databases");
  await expect(login.submit).toBeVisible();
});

test("the keyboard alone logs in, navigates and opens a stream", async ({ page }) => {
  const login = new LoginScreen(page);
  const shell = new Shell(page);
  await page.goto("/");
  await shell.tabTo(login.name);
  await page.keyboard.type(stack.admin.name);
  await shell.tabTo(login.password);
  await page.keyboard.type(stack.admin.password);
  await page.keyboard.press("Enter");
  await expect(shell.heading("Overview")).toBeVisible();

  const stream = page.getByRole("link", { name: stack.demo.stream, exact: true });
  await expect(stream).toBeVisible();
  await shell.tabTo(stream);
  await page.keyboard.press("Enter");
  await expect(shell.heading(stack.demo.stream)).toBeVisible();

  // From the top: the skip link leads past the navigation, the navigation leads to another page.
  await page.reload();
  await expect(shell.heading(stack.demo.stream)).toBeVisible();
  await page.keyboard.press("Tab");
  await expect(page.getByRole("link", { name: "Skip to content" })).toBeFocused();
  const databases = shell.navigation.getByRole("link", { name: "Databases" });
  await shell.tabTo(databases);
  await page.keyboard.press("Enter");
  await expect(shell.heading("Databases")).toBeVisible();
});
