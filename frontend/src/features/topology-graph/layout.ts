// Places of the graph's nodes, from left (source) to right (destination).
import { Graph, layout } from "@dagrejs/dagre";
import type { Topology } from "@/api/types";

export const NODE_WIDTH = 186;
export const NODE_HEIGHT = 70;

export interface Place {
  x: number;
  y: number;
}

/** Top left corner of each node, by node id. */
export function placeNodes(topology: Topology): Map<string, Place> {
  const graph = new Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 22, ranksep: 80, marginx: 12, marginy: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of topology.nodes) graph.setNode(node.id, { width: NODE_WIDTH, height: NODE_HEIGHT });
  for (const edge of topology.edges)
    if (graph.hasNode(edge.source) && graph.hasNode(edge.target)) graph.setEdge(edge.source, edge.target);
  layout(graph);
  return new Map(
    topology.nodes.map(({ id }) => {
      const { x, y } = graph.node(id) as Place;
      return [id, { x: x - NODE_WIDTH / 2, y: y - NODE_HEIGHT / 2 }];
    }),
  );
}

export interface EngineFrame extends Place {
  id: string;
  label: string;
  state: string | null;
  width: number;
  height: number;
}

const FRAME_PADDING = 12;
const FRAME_TITLE = 18;

/** A frame around the components of a stream that an engine runs, where two engines share the stream. */
export function engineFrames(topology: Topology, places: Map<string, Place>): EngineFrame[] {
  const shared = new Set(
    topology.edges.filter(({ kind }) => kind === "PROPAGATION").map(({ stream_id }) => stream_id),
  );
  const groups = new Map<string, { label: string; state: string | null; corners: Place[] }>();
  for (const node of topology.nodes) {
    const place = places.get(node.id);
    if (!place || !node.engine || !node.stream_id || !shared.has(node.stream_id)) continue;
    const id = `${node.stream_id}@${node.engine_id}`;
    const group = groups.get(id) ?? { label: node.engine, state: node.engine_state, corners: [] };
    group.corners.push(place);
    groups.set(id, group);
  }
  return [...groups].map(([id, { label, state, corners }]) => {
    const left = Math.min(...corners.map(({ x }) => x)) - FRAME_PADDING;
    const top = Math.min(...corners.map(({ y }) => y)) - FRAME_PADDING - FRAME_TITLE;
    const right = Math.max(...corners.map(({ x }) => x)) + NODE_WIDTH + FRAME_PADDING;
    const bottom = Math.max(...corners.map(({ y }) => y)) + NODE_HEIGHT + FRAME_PADDING;
    return { id, label, state, x: left, y: top, width: right - left, height: bottom - top };
  });
}

/** Changes only when nodes or edges come or go, so that rates do not move the graph. */
export function shapeOf(topology: Topology): string {
  return [
    ...topology.nodes.map(({ id }) => id),
    ...topology.edges.map(({ source, target }) => `${source}>${target}`),
  ].join("\n");
}

/** Pixels that the drawing area needs: as high as the graph, within what a screen shows. */
export function graphHeight(places: Map<string, Place>): number {
  const bottom = Math.max(0, ...[...places.values()].map(({ y }) => y + NODE_HEIGHT));
  return Math.min(640, Math.max(260, bottom + 90));
}
