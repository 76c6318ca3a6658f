import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { check, destination, refusedBy, stream } from "@/test/data";
import { expectNoAxeViolations, renderUi, stubApi } from "@/test/render";
import { DestinationRules } from "./destination-rules";

const ofOrders = { scope: "table" as const, schema: "public", table: "orders", positive: [], negative: null };
const counts = {
  counted_since: "2026-11-21T00:00:01.400000Z",
  tables: [
    {
      schema: "public",
      table: "orders",
      scopes: ["table" as const, "global" as const],
      passed: 120,
      dropped: 34,
      became_inserts: 5,
      became_deletes: 6,
      by_policy: 7,
      at_source: [],
      at_engine_because: null,
    },
  ],
};
const changed = check({
  id: "row_rules_changed",
  title: "Changed row rules",
  status: "consent",
  items: ["public.orders"],
  consent: "row_rules_changed:1234",
});
const database = (name: string) => ({ id: `database-${name}`, name, address: `${name}:5432/shop` });
const two = () =>
  stream({
    destinations: [
      destination({ id: "all", database: database("all") }),
      destination({ id: "north", database: database("north"), row_rules: [ofOrders], rule_counts: counts }),
    ],
  });

it("shows each destination's own rules and what they have decided", async () => {
  renderUi(<DestinationRules stream={two()} mayAct />);
  expect(screen.getByText("everything that the stream's rules let pass")).toBeVisible();
  const cells = screen.getAllByRole("cell").map(({ textContent }) => textContent);
  expect(cells).toEqual(["public.orders", "the table, all tables", "120", "34", "5", "6", "7"]);
  expect(screen.getByText(/^Counted since changes began to be read for north/)).toBeVisible();
  await expectNoAxeViolations();
});

it("is not there for the only destination of a stream, unless that has rules", () => {
  const { unmount } = renderUi(<DestinationRules stream={stream()} mayAct />);
  expect(screen.queryByText("Rules of the destinations")).toBeNull();
  unmount();
  const ruled = stream({ destinations: [destination({ row_rules: [ofOrders] })] });
  renderUi(<DestinationRules stream={ruled} mayAct={false} />);
  expect(screen.getByText(/passed and dropped changes while changes are read for/)).toBeVisible();
  expect(screen.getByRole("button", { name: /^Rules of/ })).toBeDisabled();
});

it("changes one destination's rules, once what they mean is accepted", async () => {
  const sent: unknown[] = [];
  stubApi({
    "PATCH /api/v1/streams/stream01/destinations/north": async (request) => {
      const body = await request.json();
      sent.push(body);
      return body.accept ? { body: two() } : refusedBy([changed]);
    },
  });
  renderUi(<DestinationRules stream={two()} mayAct />);
  await userEvent.click(screen.getByRole("button", { name: "Rules of north" }));
  await userEvent.click(await screen.findByRole("button", { name: "Rules of public.orders" }));
  await userEvent.click(await screen.findByRole("checkbox", { name: /^Nothing passes/ }));
  await userEvent.click(screen.getByRole("button", { name: "Use these rules" }));
  await userEvent.click(screen.getByRole("button", { name: "Save rules" }));
  await userEvent.click(await screen.findByRole("checkbox", { name: "Accept: Changed row rules" }));
  await userEvent.click(screen.getByRole("button", { name: "Save rules" }));
  await vi.waitFor(() => expect(screen.queryByRole("button", { name: "Save rules" })).toBeNull());
  expect(sent).toEqual([{ row_rules: [] }, { row_rules: [], accept: ["row_rules_changed:1234"] }]);
});
