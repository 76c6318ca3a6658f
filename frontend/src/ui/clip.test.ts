import { describe, expect, it } from "vitest";
import { clipAt } from "./clip";

const flat = Array.from({ length: 100 }, (_, place) => 10 + (place % 5));

describe("where an axis is clipped", () => {
  it("is above the rest when one spike hides it", () => {
    const clip = clipAt([[...flat, 900], flat]);
    expect(clip).toBeGreaterThan(14);
    expect(clip).toBeLessThan(100);
  });

  it("takes high values for a spike only while they are rare", () => {
    expect(clipAt([[...flat.slice(0, 97), 900, 901, 902]])).toBeNull();
    expect(clipAt([[...flat.slice(0, 98), 900, 901]])).toBeCloseTo(1.6 * 14);
  });

  it("is nowhere when nothing stands out, all is zero, or few points are known", () => {
    expect(clipAt([flat])).toBeNull();
    expect(clipAt([flat.map(() => 0)])).toBeNull();
    expect(clipAt([[1, 1, null, undefined, 900]])).toBeNull();
  });
});
