import { describe, expect, it } from "vitest";
import { activityOfEvent, bottleneckInWords, limitInWords, stageInWords, threadInWords } from "./advisor";
import { changeInWords, isBetter, statisticQuantity } from "./statistics";

describe("the advisor's words", () => {
  it("names stages and threads, of one destination or of several", () => {
    expect(stageInWords("QUEUE", null, "stream01:apply-queue:warehouse")).toBe("Apply queue");
    expect(stageInWords("APPLY", "APPLY SERVER")).toBe("Appliers");
    expect(threadInWords("server-3")).toBe("Applier 3");
    expect(threadInWords("warehouse:reader")).toBe("Apply reader");
    expect(threadInWords("warehouse:backlog")).toBe("Backlog");
    expect(threadInWords("public.orders")).toBe("public.orders");
  });

  it("says what limits a path, or why nothing is to blame", () => {
    const limited = {
      verdict: "BOTTLENECK" as const,
      component_id: "s:apply",
      component_type: "APPLY",
      sub_component_type: "APPLY SERVER",
      top_event: "LOCK",
    };
    expect(bottleneckInWords(limited)).toBe("Appliers, on locks at the destination");
    expect(bottleneckInWords({ ...limited, top_event: null })).toBe("Appliers");
    expect(bottleneckInWords({ ...limited, verdict: "SOURCE IDLE", component_type: null })).toBe(
      "Source idle",
    );
    expect(limitInWords("APPLY SERVER: COMMIT")).toBe("Appliers, on commits at the destination");
    expect(limitInWords("NO BOTTLENECK")).toBe("No bottleneck");
  });

  it("maps events to the activities of the bars", () => {
    expect(activityOfEvent("EVENT: CPU")).toBe("busy");
    expect(activityOfEvent("EVENT: COMMIT ORDER")).toBe("commit_order");
  });
});

describe("statistics", () => {
  it("have their units, and unknown is not zero", () => {
    expect(statisticQuantity(2048, "BYTES PER SECOND")).toEqual({ value: "2", unit: "KiB/s" });
    expect(statisticQuantity(null, "PERCENT").value).toBe("–");
    expect(changeInWords(-1.5, "PERCENT").replace(/\u00a0/g, " ")).toBe("−1.5 %");
    expect(changeInWords(0, "SECONDS")).toBe("0");
  });

  it("are judged by what is better for them, and not within the noise", () => {
    expect(isBetter("MESSAGE RATE", 10, 20)).toBe(true);
    expect(isBetter("LATENCY P99", 10, 20)).toBe(false);
    expect(isBetter("SPILL RATE", -10, -20)).toBe(true);
    expect(isBetter("MESSAGE RATE", 1, 2)).toBeNull();
    expect(isBetter("CURRENT QUEUE SIZE", 10, 20)).toBeNull();
  });
});
