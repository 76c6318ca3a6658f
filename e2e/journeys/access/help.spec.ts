import { expect, test } from "@playwright/test";
import { stack } from "../../environment/stack.ts";
import { Shell } from "../../screens/shell.ts";

test("the help is found from the console, and its search finds a page, without internet", async ({
  page,
  context,
}) => {
  const troubles: string[] = [];
  // The help's alone: the console's page behind it goes on with its own requests.
  context.on(
    "console",
    (message) => message.type() === "error" && message.page() !== page && troubles.push(message.text()),
  );
  context.on("weberror", (error) => error.page() !== page && troubles.push(String(error.error())));
  context.on("requestfailed", (request) => {
    // A request that its page leaves behind is ABORTED; one that nobody answers fails otherwise.
    const reason = request.failure()?.errorText;
    if (reason !== "net::ERR_ABORTED") troubles.push(`${request.url()}: ${reason}`);
  });
  // Requests to any other server fail, as if there were none.
  await context.route(
    (url) => url.origin !== new URL(stack.consoleUrl).origin && url.protocol.startsWith("http"),
    (route) => route.abort(),
  );

  await page.goto("/");
  const opened = page.waitForEvent("popup");
  await new Shell(page).navigation.getByRole("link", { name: "Help" }).click();
  const help = await opened;
  await expect(help.getByRole("heading", { level: 1, name: "Documentation" })).toBeVisible();
  await help.waitForLoadState(); // what is still on its way would fail with the page that is left

  await help.getByRole("textbox", { name: "Search" }).click();
  const results = help.locator(".md-search-result__link");
  await help.keyboard.type("position_gap");
  await expect(results.first()).toHaveAttribute("href", /reference\/errors\.html/);
  await help.keyboard.press("Control+A");
  await help.keyboard.type("disable_on_error");
  await results.filter({ hasText: "The error queue" }).first().click();
  await expect(help).toHaveURL(/\/help\/guides\/error-queue\.html/);
  await expect(help.getByRole("heading", { level: 1, name: /The error queue/ })).toBeVisible();
  expect(troubles).toEqual([]);
});

test("a page of the console leads to its guide", async ({ page }) => {
  await page.goto("/slots");
  const opened = page.waitForEvent("popup");
  await page.getByRole("link", { name: "Guide to slots" }).click();
  await expect((await opened).getByRole("heading", { level: 1, name: /Slots/ })).toBeVisible();
});
