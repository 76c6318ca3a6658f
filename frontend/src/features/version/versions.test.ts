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
    expect(mismatch?.cures).toEqual(["Reload this page to get the new console."]);
  });

  it("names the engines that were left behind", () => {
    const far = { ...near, name: "far", version: "1.1.0" };
    expect(versionMismatch("1.2.0", "1.2.0", [near, far])?.cures).toEqual([
      expect.stringMatching(/^Upgrade engine far: run make up/),
    ]);
  });

  it("asks for a new control plane where an engine is newer, as during an upgrade", () => {
    const mismatch = versionMismatch("1.9.0", "1.9.0", [{ ...near, version: "1.10.0" }]);
    expect(mismatch?.cures).toEqual(["Upgrade the control plane: run make up on its host."]);
  });
});
