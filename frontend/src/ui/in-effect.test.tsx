import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { destination } from "@/test/data";
import { expectNoAxeViolations, renderUi } from "@/test/render";
import { InEffect } from "./in-effect";

const database = (name: string) => ({ id: `database-${name}`, name, address: `${name}:5432/shop` });
const at = (
  name: string,
  in_effect: { under_way: boolean; from: string | null; since: string | null } | null,
) => destination({ id: name, database: database(name), in_effect });

it("tells the only destination's position", async () => {
  const known = { under_way: false, from: "0/1A2B3C4", since: "2026-11-21T10:00:00Z" };
  renderUi(<InEffect destinations={[at("warehouse", known)]} />);
  expect(screen.getByRole("status")).toHaveTextContent(/^In effect from 0\/1A2B3C4, since .*10:00:00/);
  await expectNoAxeViolations();
});

it("names the destinations, and those where a change is under_way or waits for a start", () => {
  renderUi(
    <InEffect
      destinations={[
        at("north", { under_way: true, from: null, since: null }),
        at("south", { under_way: false, from: null, since: null }),
        at("older", null),
        { ...at("gone", { under_way: true, from: null, since: null }), desired_status: "DROPPED" },
      ]}
    />,
  );
  const lines = screen.getByRole("status").querySelectorAll("p");
  expect([...lines].map(({ textContent }) => textContent)).toEqual([
    "north: The last change is not in effect yet",
    "south: The last change takes effect with the next start",
  ]);
});
