import { describe, expect, it } from "vitest";
import { activityShares } from "./activities";

describe("activityShares", () => {
  it("is unknown in the first sample", () => {
    expect(activityShares(null)).toBeNull();
    expect(activityShares({})).toBeNull();
    expect(activityShares({ busy: 0, idle: 0 })).toBeNull();
  });

  it("makes percentages into shares of one, in display order", () => {
    const shares = activityShares({ idle: 60, flow_control: 10, busy: 30, lock: 0 });
    expect(shares?.map(({ activity, share }) => [activity.key, share])).toEqual([
      ["busy", 0.3],
      ["flow_control", 0.1],
      ["idle", 0.6],
    ]);
  });

  it("corrects clocks that drift", () => {
    const shares = activityShares({ busy: 51, idle: 51 });
    expect(shares?.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
  });
});
