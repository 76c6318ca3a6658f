import { useComputedColorScheme } from "@mantine/core";
import { Background, Controls, type Edge, MarkerType, type Node, Position, ReactFlow } from "@xyflow/react";
import "@xyflow/react/dist/style.css";
import { useMemo } from "react";
import type { Topology } from "@/api/types";
import { asText, bytes, rate } from "@/lib/format";
import { EngineFrameView } from "./engine-frame";
import { engineFrames, graphHeight, NODE_HEIGHT, placeNodes, shapeOf, widthOf } from "./layout";
import { TopologyNodeView } from "./topology-node";
import "./topology-graph.css";

const nodeTypes = { component: TopologyNodeView, engine: EngineFrameView };

interface TopologyGraphProps {
  topology: Topology;
  onOpen: (node: Topology["nodes"][number]) => void;
}

export function TopologyGraph({ topology, onOpen }: TopologyGraphProps) {
  const scheme = useComputedColorScheme("light");
  const shape = shapeOf(topology);
  // biome-ignore lint/correctness/useExhaustiveDependencies: places depend on the shape only, not on rates and states
  const places = useMemo(() => placeNodes(topology), [shape]);

  const nodes = useMemo<Node[]>(
    () => [
      ...engineFrames(topology, places).map(({ id, label, state, x, y, width, height }) => ({
        id,
        type: "engine",
        position: { x, y },
        width,
        height,
        zIndex: -1,
        data: { label, state },
        draggable: false,
        connectable: false,
      })),
      ...topology.nodes.map((node) => ({
        id: node.id,
        type: "component",
        position: places.get(node.id) ?? { x: 0, y: 0 },
        width: widthOf(node),
        height: NODE_HEIGHT,
        data: { node, onOpen },
        sourcePosition: Position.Right,
        targetPosition: Position.Left,
        draggable: false,
        connectable: false,
      })),
    ],
    [topology, places, onOpen],
  );
  const edges = useMemo<Edge[]>(
    () =>
      topology.edges.map((edge) => {
        const flow = edge.lcrs_per_second === null ? edge.kind : asText(rate(edge.lcrs_per_second, "LCR"));
        const text = edge.backlog_bytes ? `${flow} · ${asText(bytes(edge.backlog_bytes))} on disk` : flow;
        const flowing = (edge.lcrs_per_second ?? 0) > 0;
        return {
          id: edge.id,
          source: edge.source,
          target: edge.target,
          label: text,
          ariaLabel: `${edge.kind} from ${edge.source} to ${edge.target}: ${text}`,
          animated: flowing,
          focusable: false,
          className: [flowing ? "flowing" : "", edge.kind === "PROPAGATION" ? "propagation" : ""]
            .join(" ")
            .trim(),
          markerEnd: { type: MarkerType.ArrowClosed, width: 16, height: 16 },
          labelShowBg: true,
          labelBgPadding: [5, 2] as [number, number],
          labelBgBorderRadius: 3,
        };
      }),
    [topology.edges],
  );

  return (
    <div className="topology" style={{ height: graphHeight(places) }}>
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={nodeTypes}
        colorMode={scheme}
        fitView
        fitViewOptions={{ padding: 0.04, maxZoom: 1 }}
        minZoom={0.2}
        maxZoom={1.5}
        nodesFocusable={false}
        nodesConnectable={false}
        elementsSelectable={false}
        proOptions={{ hideAttribution: true }}
        aria-label="Graph of databases and components"
      >
        <Background gap={20} size={1} />
        <Controls showInteractive={false} />
      </ReactFlow>
    </div>
  );
}
