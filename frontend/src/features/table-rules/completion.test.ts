import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { completed, functions, keywords, placeAt, suggestionsAt } from "./completion";

const columns = ["id", "region", "Region", "table", "old", "größe", "lower_bound"].map((name) => ({
  name,
  type: "text",
}));

/** `|` is the caret. Null: nothing is offered. */
function offered(marked: string, readsRows = true): string[] | null {
  const caret = marked.indexOf("|");
  const condition = marked.replace("|", "");
  const place = placeAt(condition, caret);
  return place && suggestionsAt(condition, place, columns, readsRows).map(({ text }) => text);
}

function completedAt(marked: string, text: string): string {
  const condition = marked.replace("|", "");
  const place = placeAt(condition, marked.indexOf("|"));
  if (!place) return "";
  const { condition: next, caret } = completed(condition, place, text);
  return `${next.slice(0, caret)}|${next.slice(caret)}`;
}

describe("suggestions", () => {
  it("are columns, attributes, keywords and functions that begin with the word, whatever its case", () => {
    expect(offered("id > 0 AND re|")).toEqual(["region", '"Region"', "repeat(", "replace(", "reverse("]);
    expect(offered("LOW|")).toEqual(["lower_bound", "lower("]);
    expect(offered("region = 'x' an|")).toEqual(["AND"]);
    expect(offered("i|")).toEqual(["id", "ILIKE", "IN", "IS", "ISNULL", "initcap(", "isfinite("]);
    expect(offered("op|")).toEqual(["operation"]);
    expect(offered("nothing_like_it|")).toEqual([]);
  });

  it("end once the word is there", () => {
    expect(offered("id|")).toEqual([]);
    expect(offered("region|")).toEqual(['"Region"']);
    expect(offered("id = 1 and|")).toEqual([]);
  });

  it("are columns alone behind old and new", () => {
    expect(offered("old.|")).toEqual([
      "id",
      "region",
      '"Region"',
      "table",
      '"old"',
      '"größe"',
      "lower_bound",
    ]);
    expect(offered("NEW.re|")).toEqual(["region", '"Region"']);
    expect(offered("threshold.re|")).toBeNull();
    expect(offered("x.|")).toBeNull();
  });

  it("have old and new only where a rule may read both rows", () => {
    expect(offered("ne|")).toEqual(["new."]);
    expect(offered("ne|", false)).toEqual([]);
  });

  it("write names in quotes where they would be read as something else", () => {
    expect(offered("ta|")).toEqual(['"table"', "tag"]);
    expect(offered("new.ta|")).toEqual(["table"]);
    expect(offered('"Re|')).toEqual(["region", '"Region"', "repeat(", "replace(", "reverse("]);
    expect(offered("ol|")).toEqual(['"old"', "old."]);
  });

  it("are all that there is where no word has begun", () => {
    expect(offered("id = |")).toHaveLength(columns.length + 2 + 5 + keywords.length + functions.length);
  });

  it("never stand in a string", () => {
    expect(offered("region = 're|'")).toBeNull();
    expect(offered("region = 'it''s re|")).toBeNull();
    expect(offered("region = 'it''s' AND re|")).toContain("region");
    expect(offered('"it\'s" = re|')).toContain("region");
  });

  it("take the word's place, and leave what follows", () => {
    expect(completedAt("id = 1 AND reg|'x'", "region")).toBe("id = 1 AND region|'x'");
    expect(completedAt('new."Reg| = 1', '"Region"')).toBe('new."Region"| = 1');
    expect(completedAt("low|", "lower(")).toBe("lower(|");
  });
});

it("knows the keywords of the rule language", () => {
  const page = readFileSync("../docs/reference/rule-language.md", "utf8");
  const grammar = page.split("## Grammar")[1]?.split("## Types")[0] ?? "";
  const named = [...new Set(grammar.match(/\b[A-Z]{2,}\b/g))];
  expect(named).toContain("BETWEEN");
  const known = keywords.map((word) => word.replace("(", ""));
  expect(named.filter((word) => !known.includes(word))).toEqual([]);
});

it("knows the functions of the rule language", () => {
  const page = readFileSync("../docs/reference/rule-language.md", "utf8");
  const table = page.split("| function | arguments: result |")[1]?.split("\n\n")[0] ?? "";
  const named = [...table.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name);
  expect(functions).toEqual(named);
});
