import { describe, expect, it } from "vitest";
import type { Topology } from "@/api/types";
import { engineFrames, NODE_HEIGHT, placeNodes, shapeOf, widthOf } from "./layout";

const node = (id: string, engine: string | null): Topology["nodes"][number] => ({
  id,
  kind: engine ? "QUEUE" : "DATABASE",
  label: id,
  state: null,
  stream_id: engine ? "stream01" : null,
  engine_id: engine,
  engine,
  engine_state: engine && "ONLINE",
  reason: null,
  destination_id: null,
  database_id: engine ? null : id,
});
const edge = (
  source: string,
  target: string,
  kind: Topology["edges"][number]["kind"],
): Topology["edges"][number] => ({
  id: `${source}>${target}`,
  source,
  target,
  kind,
  mode: null,
  stream_id: "stream01",
  destination_id: null,
  lcrs_per_second: null,
  backlog_bytes: null,
});
const nodes = [node("a", null), node("b", "alpha"), node("c", "alpha"), node("d", "bravo"), node("e", null)];
const edges = (between: "PROPAGATION" | "LCR") => [
  edge("a", "b", "WAL"),
  edge("b", "c", "LCR"),
  edge("c", "d", between),
  edge("d", "e", "SQL"),
];

describe("engineFrames", () => {
  it("holds each engine's components of a stream over two", () => {
    const topology = { nodes, edges: edges("PROPAGATION") };
    const places = placeNodes(topology);
    const frames = engineFrames(topology, places);
    expect(frames.map(({ label }) => label)).toEqual(["alpha", "bravo"]);
    const [alpha, bravo] = frames;
    for (const id of ["b", "c"]) {
      const place = places.get(id);
      expect(place?.x).toBeGreaterThan(alpha?.x ?? Number.NaN);
      expect((place?.x ?? 0) + widthOf(nodes.find((one) => one.id === id) ?? node(id, null))).toBeLessThan(
        (alpha?.x ?? 0) + (alpha?.width ?? 0),
      );
      expect((place?.y ?? 0) + NODE_HEIGHT).toBeLessThan((alpha?.y ?? 0) + (alpha?.height ?? 0));
    }
    expect((alpha?.x ?? 0) + (alpha?.width ?? 0)).toBeLessThan(bravo?.x ?? 0);
  });

  it("is not drawn for a stream on one engine", () => {
    const topology = { nodes, edges: edges("LCR") };
    expect(engineFrames(topology, placeNodes(topology))).toEqual([]);
  });
});

describe("widthOf", () => {
  const named = (label: string) => ({ ...node("n", "engine-1"), label });

  it("has room for the names of a component's stream, destination and engine", () => {
    const short = widthOf(named("a"));
    const long = widthOf(named("shop to warehouse → warehouse"));
    expect(long).toBeGreaterThan(short);
    // Inter's average at 12 px, of what the node shows: the label and the engine.
    expect(long).toBeGreaterThan("shop to warehouse → warehouse · engine-1".length * 6);
    expect(widthOf(named("x".repeat(200)))).toBe(widthOf(named("x".repeat(100))));
  });

  it("keeps nodes apart whatever their widths, and places them anew when a name changes", () => {
    const wide = nodes.map((one) => ({
      ...one,
      label: one.id === "b" ? "shop to warehouse → warehouse" : "a",
    }));
    const topology = { nodes: wide, edges: edges("LCR") };
    const places = placeNodes(topology);
    const [first, second] = wide.slice(1, 3);
    if (!first || !second) throw new Error("two nodes");
    expect((places.get("b")?.x ?? 0) + widthOf(first)).toBeLessThan(places.get("c")?.x ?? 0);
    expect(shapeOf(topology)).not.toBe(shapeOf({ nodes, edges: edges("LCR") }));
  });
});
