import { expect, test } from "@playwright/test";
import { stack } from "../../environment/stack.ts";

test.use({ storageState: { cookies: [], origins: [] } });

test("the API's reference is drawn without internet, under the console's own policy", async ({ page }) => {
  const troubles: string[] = [];
  page.on("console", (message) => message.type() === "error" && troubles.push(message.text()));
  page.on("pageerror", (error) => troubles.push(String(error)));
  page.on("requestfailed", (request) => troubles.push(`${request.url()} failed`));
  page.on(
    "response",
    (answer) => answer.status() >= 400 && troubles.push(`${answer.url()} ${answer.status()}`),
  );
  // Requests to any other server fail, as if there were none.
  await page.route(
    (url) => url.origin !== new URL(stack.consoleUrl).origin && url.protocol.startsWith("http"),
    (route) => route.abort(),
  );

  const answer = await page.goto("/api/docs");
  expect(answer?.headers()["content-security-policy"]).toContain("default-src 'self'");
  const known = await (await page.request.get("/api/v1/openapi.json")).json();
  const operations = Object.values<object>(known.paths)
    .flatMap((item) => Object.values(item))
    .map(({ operationId }) => operationId);
  // A long reference is drawn only where it is looked at.
  const drawn = new Set<string>();
  await expect(async () => {
    for (const id of await page.locator(".opblock-summary-operation-id").allTextContents())
      drawn.add(id.replaceAll("\u200b", "").trim());
    await page.mouse.wheel(0, 300);
    expect(drawn.size).toBe(operations.length);
  }).toPass({ intervals: [50] });
  expect([...drawn].sort()).toEqual(operations.sort());

  await page.getByPlaceholder("Filter by tag or path").fill("databases");
  await page.getByText("databases_create", { exact: true }).click();
  await expect(page.getByText("Request body").first()).toBeVisible();
  await expect(page.getByText("db1.example.com").first()).toBeVisible();
  expect(troubles).toEqual([]);
});
