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

  it("is what thalweg streams create-from takes (backend/tests/test_commands.py)", () => {
    const condition = `amount < 50 AND item <> '"no"'`;
    expect(
      yaml({
        name: "shop to warehouse",
        source_id: "sourceid0001",
        destinations: [
          {
            database_id: "dest0001",
            row_rules: [
              {
                scope: "global",
                positive: [{ name: "small", condition, subset: false, on_error: "as_true" }],
              },
            ],
          },
        ],
        rules: { include: [{ schema: "public", table: "*" }], exclude: [] },
        parameters: { parallelism: 2 },
        accept: [],
        start: true,
      }),
    ).toBe(`name: "shop to warehouse"
source_id: sourceid0001
destinations:
  - database_id: dest0001
    row_rules:
      - scope: global
        positive:
          - name: small
            condition: "amount < 50 AND item <> '\\"no\\"'"
            subset: false
            on_error: as_true
rules:
  include:
    - schema: public
      table: "*"
  exclude: []
parameters:
  parallelism: 2
accept: []
start: true`);
  });

  it("escapes what YAML takes for the end of a line, or not at all", () => {
    expect(yaml({ a: "x\u2028y\u0085\u007f\n" })).toBe('a: "x\\u2028y\\u0085\\u007f\\n"');
  });

  it("quotes text that would be read as something else, and leaves out what is not given", () => {
    expect(yaml({ a: "no", b: "12", c: 12, d: null, e: undefined, f: 'say "x": y' })).toBe(
      ['a: "no"', 'b: "12"', "c: 12", "d: null", 'f: "say \\"x\\": y"'].join("\n"),
    );
  });
});
