import { expect, test } from "vitest";
import { causesOf, haveOneCause } from "./causes";

const refused = {
  code: "database_unreachable",
  side: "destination",
  cure: "Start it.",
  sqlstate: null as string | null,
  table: null,
};
const at = (name: string, error: (typeof refused & { message: string }) | null) => ({
  id: name,
  database: { name },
  error,
});

test("one cause is told once, whatever the messages", () => {
  const causes = causesOf([
    at("north", { ...refused, message: 'Destination "north": refused.' }),
    at("east", null),
    at("south", { ...refused, message: 'Destination "south": refused.' }),
    at("west", { ...refused, sqlstate: "57P03", message: "It starts up." }),
  ]);
  expect(causes.map((cause) => cause.at.map(({ name }) => name))).toEqual([["north", "south"], ["west"]]);
});

test("no error is no cause", () => {
  expect(haveOneCause(null, null)).toBe(false);
  expect(haveOneCause(refused, { ...refused })).toBe(true);
  expect(haveOneCause(refused, { ...refused, table: "public.orders" })).toBe(false);
});
