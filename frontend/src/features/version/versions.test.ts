import { describe, expect, it } from "vitest";
import { versionMismatch } from "./versions";

const near = { name: "near", version: "1.2.0", state: "ONLINE" as const };

describe("versionMismatch", () => {
  it("is null while every known part is of the same version", () => {
    expect(versionMismatch("1.2.0", "1.2.0", [near])).toBeNull();
    expect(versionMismatch("1.2.0", "1.2.0", [{ ...near, version: null }])).toBeNull();
    expect(versionMismatch("1.1.0", undefined, [near])).toBeNull();
  });

  it("does not judge what an engine ran before it fell silent", () => {
    expect(
      versionMismatch("1.2.0", "1.2.0", [{ ...near, version: "1.1.0", state: "UNREACHABLE" }]),
    ).toBeNull();
  });

  it("asks for a reload where the console is another version", () => {
    const mismatch = versionMismatch("1.1.0", "1.2.0", [near]);
    expect(mismatch?.parts).toEqual([
      { name: "Console", version: "1.1.0" },
      { name: "Control plane", version: "1.2.0" },
      { name: "Engine near", version: "1.2.0" },
    ]);
    expect(mismatch?.cures).toEqual([expect.stringMatching(/^Reload this page\./)]);
  });

  it("names the engines that were left behind", () => {
    const far = { ...near, name: "far", version: "1.1.0" };
    expect(versionMismatch("1.2.0", "1.2.0", [near, far])?.cures).toEqual([
      "Run make up on the host of engine far, or restart it with this version's program.",
    ]);
  });
});
