import { Group, Text } from "@mantine/core";
import {
  IconDatabase,
  IconDatabaseExport,
  IconDatabaseImport,
  IconPlugConnected,
  IconSend,
  IconStack2,
} from "@tabler/icons-react";
import { Handle, type NodeProps, Position } from "@xyflow/react";
import type { Topology } from "@/api/types";
import { stateInWords } from "@/lib/states";
import { ToneIcon } from "@/ui/tone";
import { headOf, whereOf } from "./layout";

type TopologyNode = Topology["nodes"][number];

const icons: Record<TopologyNode["kind"], typeof IconDatabase> = {
  DATABASE: IconDatabase,
  CAPTURE: IconDatabaseExport,
  QUEUE: IconStack2,
  "PROPAGATION SENDER": IconSend,
  "PROPAGATION RECEIVER": IconPlugConnected,
  APPLY: IconDatabaseImport,
};

export function TopologyNodeView({ data }: NodeProps) {
  const { node, onOpen } = data as { node: TopologyNode; onOpen: (node: TopologyNode) => void };
  const Icon = icons[node.kind];
  const state = stateInWords(node.state);
  const [head, where] = [headOf(node), whereOf(node)];
  return (
    <>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <button
        type="button"
        className="topology-node nodrag nopan"
        data-kind={node.kind}
        onClick={() => onOpen(node)}
      >
        <Group gap={7} wrap="nowrap">
          <Icon size={16} stroke={1.7} aria-hidden style={{ flex: "none" }} />
          <Text size="sm" fw={600} truncate title={head}>
            {head}
          </Text>
        </Group>
        <Text size="xs" c="dimmed" truncate title={where}>
          {where}
        </Text>
        <Group gap={5} wrap="nowrap" title={`${state.label}. ${node.reason ?? state.definition}`}>
          <ToneIcon tone={state.tone} size={13} />
          <Text size="xs" truncate style={{ color: `var(--tone-${state.tone})` }}>
            {state.label}
          </Text>
        </Group>
      </button>
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </>
  );
}
