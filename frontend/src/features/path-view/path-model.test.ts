import { describe, expect, it } from "vitest";
import { analysis, statistic } from "@/test/advisor";
import { byEngine, pathModel, sharesOf } from "./path-model";

const server = (values: Record<string, number | null>, thread: number | null = null) =>
  Object.entries(values).map(([name, value]) =>
    statistic("stream01:apply", "APPLY", name, value, { sub_component_type: "APPLY SERVER", thread }),
  );

describe("sharesOf", () => {
  it("names what is left beside the biggest events, and nothing when it is rounding", () => {
    const shares = sharesOf(
      new Map<string, number | null>([
        ["IDLE", 10],
        ["FLOW CONTROL", 20],
        ["EVENT: LOCK", 40],
        ["EVENT: COMMIT ORDER", 20],
      ]),
    );
    expect(shares?.activities).toEqual({ idle: 10, flow_control: 20, lock: 40, commit_order: 20, other: 10 });
    expect(shares?.occupied).toBe(70);
    const rounded = new Map([
      ["IDLE", 60],
      ["FLOW CONTROL", 0],
      ["EVENT: CPU", 39.7],
    ]);
    expect(sharesOf(rounded)?.activities).toEqual({ idle: 60, flow_control: 0, busy: 39.7 });
  });

  it("is unknown before there are two samples", () => {
    expect(sharesOf(new Map([["IDLE", null]]))).toBeNull();
  });
});

describe("pathModel", () => {
  it("shows apply as its sub-components and marks the bottleneck with its busiest thread", () => {
    const model = pathModel(
      analysis({
        statistics: [
          ...server({ "MESSAGE APPLY RATE": 40, IDLE: 5, "FLOW CONTROL": 0, "EVENT: LOCK": 90 }),
          ...server({ "MESSAGE APPLY RATE": 30, IDLE: 1, "FLOW CONTROL": 0, "EVENT: LOCK": 99 }, 1),
          ...server({ "MESSAGE APPLY RATE": 10, IDLE: 9, "FLOW CONTROL": 0, "EVENT: LOCK": 81 }, 2),
        ],
        bottleneck: { sub_component_type: "APPLY SERVER", top_thread: 1 },
      }),
      "stream01",
    );
    expect(model.stages.map(({ title }) => title)).toEqual([
      "Capture",
      "Queue",
      "Apply reader",
      "Coordinator",
      "Appliers",
    ]);
    const appliers = model.stages.at(-1);
    expect(appliers?.bottleneck).toBe(true);
    expect(appliers?.threads.map(({ number, top }) => [number, top])).toEqual([
      [1, true],
      [2, false],
    ]);
    expect(model.stages.filter(({ bottleneck }) => bottleneck)).toHaveLength(1);
  });

  it("marks who is held back by whom: over links, and inside apply by flow control", () => {
    const { stages } = pathModel(analysis({ backPressured: [1, 2], readerFlowControl: 80 }), "stream01");
    expect(stages.map(({ heldBackBy }) => heldBackBy)).toEqual([
      "Queue",
      "Apply reader",
      "Coordinator",
      null,
      null,
    ]);
  });

  it("is empty for a path that is not in the analysis", () => {
    expect(pathModel(analysis(), "elsewhere")).toEqual({ stages: [], bottleneck: null, figures: {} });
  });
});

describe("byEngine", () => {
  it("breaks the path where the engine changes", () => {
    const { stages } = pathModel(analysis({ applyEngine: "engine-2" }), "stream01");
    expect(byEngine(stages).map(({ engine, stages: own }) => [engine, own.length])).toEqual([
      ["engine-1", 2],
      ["engine-2", 3],
    ]);
  });
});
