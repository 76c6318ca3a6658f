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
import { sentenceCase, stateInWords } from "@/lib/states";
import { ToneIcon } from "@/ui/tone";

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
          <Text size="sm" fw={600} truncate>
            {node.kind === "DATABASE" ? node.label : sentenceCase(node.kind)}
          </Text>
        </Group>
        {node.kind === "DATABASE" ? (
          <Text size="xs" c="dimmed">
            Database
          </Text>
        ) : (
          <>
            <Text
              size="xs"
              c="dimmed"
              truncate
              title={node.engine ? `${node.label} on ${node.engine}` : node.label}
            >
              {node.label}
              {node.engine && ` · ${node.engine}`}
            </Text>
            <Group gap={5} wrap="nowrap">
              <ToneIcon tone={state.tone} size={13} />
              <Text size="xs" truncate style={{ color: `var(--tone-${state.tone})` }}>
                {state.label}
              </Text>
            </Group>
          </>
        )}
      </button>
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </>
  );
}
