// Places of the graph's nodes, from left (source) to right (destination).
import { Graph, layout } from "@dagrejs/dagre";
import type { Topology } from "@/api/types";
import { sentenceCase } from "@/lib/states";

export const NODE_HEIGHT = 70;
const WIDTH_MIN = 150;
/** Longer names are cut off, and stand in the node's title. */
const WIDTH_MAX = 320;
/** Of the node's two borders and its padding, left and right. */
const SIDES = 26;
/** The kind's icon, with the gap after it. */
const ICON = 23;
/** Pixels of a character of Inter in such names: bold at 13 px, and at 12 px. */
const BOLD = 8;
const SMALL = 6.3;

type TopologyNode = Topology["nodes"][number];

/** The first line of a node. */
export function headOf({ kind, label }: TopologyNode): string {
  return kind === "DATABASE" ? label : sentenceCase(kind);
}

/** The second one: whose component it is, and on which engine. */
export function whereOf({ kind, label, engine }: TopologyNode): string {
  if (kind === "DATABASE") return "Database";
  return engine ? `${label} · ${engine}` : label;
}

/** Pixels that a node needs for its names. States come and go, so that they do not count. */
export function widthOf(node: TopologyNode): number {
  const needed = SIDES + Math.max(ICON + headOf(node).length * BOLD, whereOf(node).length * SMALL);
  return Math.ceil(Math.min(WIDTH_MAX, Math.max(WIDTH_MIN, needed)));
}

export interface Place {
  x: number;
  y: number;
}

/** Top left corner of each node, by node id. */
export function placeNodes(topology: Topology): Map<string, Place> {
  const graph = new Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 22, ranksep: 80, marginx: 12, marginy: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of topology.nodes) graph.setNode(node.id, { width: widthOf(node), height: NODE_HEIGHT });
  for (const edge of topology.edges)
    if (graph.hasNode(edge.source) && graph.hasNode(edge.target)) graph.setEdge(edge.source, edge.target);
  layout(graph);
  return new Map(
    topology.nodes.map((node) => {
      const { x, y } = graph.node(node.id) as Place;
      return [node.id, { x: x - widthOf(node) / 2, y: y - NODE_HEIGHT / 2 }];
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

interface Box extends Place {
  right: number;
}

const FRAME_PADDING = 12;
const FRAME_TITLE = 18;

/** A frame around the components of a stream that an engine runs, where two engines share the stream. */
export function engineFrames(topology: Topology, places: Map<string, Place>): EngineFrame[] {
  const shared = new Set(
    topology.edges.filter(({ kind }) => kind === "PROPAGATION").map(({ stream_id }) => stream_id),
  );
  const groups = new Map<string, { label: string; state: string | null; boxes: Box[] }>();
  for (const node of topology.nodes) {
    const place = places.get(node.id);
    if (!place || !node.engine || !node.stream_id || !shared.has(node.stream_id)) continue;
    const id = `${node.stream_id}@${node.engine_id}`;
    const group = groups.get(id) ?? { label: node.engine, state: node.engine_state, boxes: [] };
    group.boxes.push({ ...place, right: place.x + widthOf(node) });
    groups.set(id, group);
  }
  return [...groups].map(([id, { label, state, boxes }]) => {
    const left = Math.min(...boxes.map(({ x }) => x)) - FRAME_PADDING;
    const top = Math.min(...boxes.map(({ y }) => y)) - FRAME_PADDING - FRAME_TITLE;
    const right = Math.max(...boxes.map(({ right }) => right)) + FRAME_PADDING;
    const bottom = Math.max(...boxes.map(({ y }) => y)) + NODE_HEIGHT + FRAME_PADDING;
    return { id, label, state, x: left, y: top, width: right - left, height: bottom - top };
  });
}

/** Changes only when nodes, their names or edges do, so that rates do not move the graph. */
export function shapeOf(topology: Topology): string {
  return [
    ...topology.nodes.map((node) => `${node.id} ${headOf(node)} ${whereOf(node)}`),
    ...topology.edges.map(({ source, target }) => `${source}>${target}`),
  ].join("\n");
}

/** Pixels that the drawing area needs: as high as the graph, within what a screen shows. */
export function graphHeight(places: Map<string, Place>): number {
  const bottom = Math.max(0, ...[...places.values()].map(({ y }) => y + NODE_HEIGHT));
  return Math.min(640, Math.max(260, bottom + 90));
}
