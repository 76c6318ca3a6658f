import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { check, database, refusedBy, stream } from "@/test/data";
import { renderUi, stubApi } from "@/test/render";
import { AddDestination } from "./add-destination";

it("lets what the preflight asks for be accepted", async () => {
  const sent: unknown[] = [];
  const leftOut = check({ title: "What the copy leaves out", status: "consent", consent: "left_out:1234" });
  stubApi({
    "GET /api/v1/databases": { body: { items: [database("archive01", "archive")], next_cursor: null } },
    "GET /api/v1/engines": { body: { items: [], next_cursor: null } },
    "POST /api/v1/streams/stream01/destinations": async (request) => {
      const body = await request.json();
      sent.push(body);
      return body.accept ? { status: 202, body: {} } : refusedBy([leftOut]);
    },
  });
  renderUi(<AddDestination stream={stream({ actions: ["add_destination"] })} mayAct />);
  await userEvent.click(screen.getByRole("button", { name: "Add destination" }));
  await userEvent.click(await screen.findByRole("combobox", { name: "Database" }));
  await userEvent.click(await screen.findByRole("option", { name: "archive" }));
  const add = screen.getAllByRole("button", { name: "Add destination" }).at(-1) as HTMLElement;
  await userEvent.click(add);
  await userEvent.click(await screen.findByRole("checkbox", { name: "Accept: What the copy leaves out" }));
  await userEvent.click(add);
  await vi.waitFor(() => expect(sent).toHaveLength(2));
  expect(sent[1]).toEqual({ database_id: "archive01", accept: ["left_out:1234"] });
});

it("gives the destination rules of its own", async () => {
  const sent: unknown[] = [];
  stubApi({
    "GET /api/v1/databases": { body: { items: [database("archive01", "archive")], next_cursor: null } },
    "GET /api/v1/engines": { body: { items: [], next_cursor: null } },
    "POST /api/v1/streams/stream01/destinations": async (request) => {
      sent.push(await request.json());
      return { status: 202, body: {} };
    },
  });
  renderUi(<AddDestination stream={stream({ actions: ["add_destination"] })} mayAct />);
  await userEvent.click(screen.getByRole("button", { name: "Add destination" }));
  await userEvent.click(await screen.findByRole("combobox", { name: "Database" }));
  await userEvent.click(await screen.findByRole("option", { name: "archive" }));
  await userEvent.click(screen.getByRole("combobox", { name: "Add rules at archive" }));
  await userEvent.click(await screen.findByRole("option", { name: "all tables" }));
  const editor = within(await screen.findByRole("dialog", { name: "Rules of all tables at archive" }));
  await userEvent.click(editor.getByRole("checkbox", { name: "Nothing passes" }));
  await userEvent.click(editor.getByRole("button", { name: "Use these rules" }));
  expect(await screen.findByText("nothing passes")).toBeVisible();
  await userEvent.click(screen.getAllByRole("button", { name: "Add destination" }).at(-1) as HTMLElement);
  await vi.waitFor(() => expect(sent).toHaveLength(1));
  expect(sent[0]).toEqual({ database_id: "archive01", row_rules: [{ scope: "global", positive: [] }] });
});
