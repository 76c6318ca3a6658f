import { expect, test } from "@playwright/test";
import { Authenticator } from "../../environment/authenticator.ts";
import { RUN, stack } from "../../environment/stack.ts";
import { LoginScreen } from "../../screens/login-screen.ts";
import { Shell } from "../../screens/shell.ts";

test.use({ storageState: { cookies: [], origins: [] } });

const ada = { name: `ada ${RUN}`, password: "weathered copper kettle" };

test("a second factor is set up, asked for at the login, replaced by a recovery code, and switched off", async ({
  page,
  request,
}) => {
  const made = await request.post("/api/v1/users", {
    headers: { Authorization: `Bearer ${stack.apiToken()}` },
    data: { ...ada, role: "viewer" },
  });
  expect(made.status(), await made.text()).toBe(201);
  const login = new LoginScreen(page);
  const shell = new Shell(page);
  const panel = page.getByRole("region", { name: "Second factor" });
  const dialog = page.getByRole("dialog");

  await page.goto("/settings");
  await login.logIn(ada.name, ada.password);
  await panel.getByRole("button", { name: "Set up" }).click();
  await dialog.getByLabel("Current password").fill(ada.password);
  await dialog.getByRole("button", { name: "Continue" }).click();
  await expect(dialog.getByRole("img", { name: /^QR code/ })).toBeVisible();
  const secret = await dialog.getByRole("region", { name: "Secret" }).innerText();
  const device = new Authenticator(secret.trim());
  await dialog.getByLabel("Code from the app").fill(device.code());
  await dialog.getByRole("button", { name: "Switch on" }).click();
  const shown = await dialog.getByRole("region", { name: "Recovery codes" }).innerText();
  const recoveryCodes = shown.trim().split("\n");
  expect(recoveryCodes).toHaveLength(10);
  await dialog.getByRole("button", { name: "I have saved them" }).click();
  await expect(panel).toContainText("10 recovery codes are left");

  await shell.logOut(ada.name);
  await login.logIn(ada.name, ada.password);
  await login.verify("000000 0");
  await expect(login.problem).toContainText("The code is wrong");
  await login.verify(device.code());
  await expect(shell.navigation).toBeVisible();

  await shell.logOut(ada.name);
  await login.logIn(ada.name, ada.password);
  await login.verify(recoveryCodes[0] ?? "");
  await shell.open("Settings");
  await expect(panel).toContainText("9 recovery codes are left");

  await shell.logOut(ada.name);
  await login.logIn(ada.name, ada.password);
  await login.verify(recoveryCodes[0] ?? "");
  await expect(login.problem).toContainText("The code is wrong");
  await login.verify(recoveryCodes[1] ?? "");
  await shell.open("Settings");
  await panel.getByRole("button", { name: "Switch off" }).click();
  await dialog.getByLabel("Current password").fill(ada.password);
  await dialog.getByLabel("Code", { exact: true }).fill(recoveryCodes[2] ?? "");
  await dialog.getByRole("button", { name: "Switch off" }).click();
  await expect(panel.getByRole("button", { name: "Set up" })).toBeVisible();

  await shell.logOut(ada.name);
  await login.logIn(ada.name, ada.password);
  await expect(shell.navigation).toBeVisible();
});
