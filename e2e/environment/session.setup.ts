// Logs in once through the API, so that only the journeys about logging in do it by hand.
import { expect, test as setup } from "@playwright/test";
import { SESSION_FILE, stack } from "./stack.ts";

setup("log in", async ({ request }) => {
  const answer = await request.post("/api/v1/session", { data: stack.admin });
  expect(answer.status(), await answer.text()).toBe(201);
  await request.storageState({ path: SESSION_FILE });
});
