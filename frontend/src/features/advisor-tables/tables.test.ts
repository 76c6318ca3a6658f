import { expect, test } from "vitest";
import { analysis } from "@/test/advisor";
import { advisorTables } from "./tables";

test("a table without rows says why, and what to do", () => {
  const said = Object.fromEntries(advisorTables(analysis()).map(({ name, empty }) => [name, empty]));
  expect(Object.keys(said)).toHaveLength(6);
  expect(said.PATH_BOTTLENECK).toMatch(/no stream.*Create one/);
  expect(said.COMPONENT_STAT).toMatch(/two samples.*take a snapshot/);
});
