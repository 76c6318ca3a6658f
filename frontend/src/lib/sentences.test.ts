import { expect, test } from "vitest";
import { firstSentence, listed, withFullStop } from "./sentences";

test("names are listed as a sentence has them", () => {
  expect(listed([])).toBe("");
  expect(listed(["north"])).toBe("north");
  expect(listed(["north", "south"])).toBe("north and south");
  expect(listed(["north", "south", "west"])).toBe("north, south and west");
});

test("a sentence ends before a space, not within a name", () => {
  expect(firstSentence("Copy public.orders again. Then retry.")).toBe("Copy public.orders again.");
  expect(firstSentence("No end")).toBe("No end");
  expect(withFullStop("No end")).toBe("No end.");
  expect(withFullStop("An end!")).toBe("An end!");
  expect(withFullStop("Does it run?")).toBe("Does it run?");
  expect(withFullStop("It says “gone.”")).toBe("It says “gone.”");
});
