import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { database } from "@/test/data";
import { renderUi, stubApi } from "@/test/render";
import { DatabaseDrawer } from "./database-drawer";

const known = { ...database("source01", "orders"), has_password: true };

function edit() {
  const path = `/api/v1/databases/${known.id}`;
  const requests = stubApi({ [`PATCH ${path}`]: { body: known }, [`POST ${path}/test`]: { body: {} } });
  renderUi(<DatabaseDrawer opened onClose={() => {}} database={known} renderTest={() => null} />);
  return requests;
}

async function replace(field: HTMLElement, text: string) {
  await userEvent.clear(field);
  await userEvent.type(field, text);
}

it.each([
  ["Host", "elsewhere.example.com", "host"],
  ["Port", "6543", "port"],
  ["User", "somebody", "user"],
])("wants the password again when the %s changes, and sends both", async (label, text, field) => {
  const requests = edit();
  const drawer = await screen.findByRole("dialog", { name: "Edit orders" });
  await replace(within(drawer).getByLabelText(label), text);
  await userEvent.click(within(drawer).getByRole("button", { name: "Save" }));
  expect(within(drawer).getByText(/Enter it again/)).toBeVisible();
  expect(requests).toHaveLength(0);
  await userEvent.type(within(drawer).getByLabelText("Password"), "secret");
  await userEvent.click(within(drawer).getByRole("button", { name: "Save" }));
  // The result of the test is kept with the database.
  await waitFor(() => expect(requests.map(({ method }) => method)).toEqual(["PATCH", "POST"]));
  const value = field === "port" ? Number(text) : text;
  expect(await requests[0]?.json()).toEqual({ [field]: value, password: "secret" });
  expect(requests[0]?.headers.get("If-Match")).toBe(known.etag);
});

it("keeps the password when only the name changes", async () => {
  const requests = edit();
  const drawer = await screen.findByRole("dialog", { name: "Edit orders" });
  await replace(within(drawer).getByLabelText("Name"), "store");
  await userEvent.click(within(drawer).getByRole("button", { name: "Save" }));
  expect(await requests[0]?.json()).toEqual({ name: "store" });
  expect(requests).toHaveLength(1);
});
