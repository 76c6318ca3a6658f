import { describe, expect, it } from "vitest";
import { yaml } from "./yaml";

describe("a body as YAML", () => {
  it("nests objects and lists", () => {
    expect(
      yaml({
        name: "shop to warehouse",
        source_id: "abc",
        rules: { include: [{ schema: "public", table: "*" }], exclude: [] },
        parameters: {},
        start: true,
      }),
    ).toBe(
      [
        'name: "shop to warehouse"',
        "source_id: abc",
        "rules:",
        "  include:",
        "    - schema: public",
        '      table: "*"',
        "  exclude: []",
        "parameters: {}",
        "start: true",
      ].join("\n"),
    );
  });

  it("quotes text that would be read as something else, and leaves out what is not given", () => {
    expect(yaml({ a: "no", b: "12", c: 12, d: null, e: undefined, f: 'say "x": y' })).toBe(
      ['a: "no"', 'b: "12"', "c: 12", "d: null", 'f: "say \\"x\\": y"'].join("\n"),
    );
  });
});
