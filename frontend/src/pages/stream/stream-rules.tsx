import { Code, Group, Text } from "@mantine/core";
import type { TableRules } from "@/api/types";
import { Panel } from "@/ui/panel";

export function StreamRules({ rules }: { rules: TableRules }) {
  const lines = [
    ["Include", rules.include],
    ["Exclude", rules.exclude ?? []],
  ] as const;
  return (
    <Panel title="Table rules">
      {lines.map(([label, list]) => (
        <Group key={label} gap={8} mb={4}>
          <Text size="sm" c="dimmed" w={60}>
            {label}
          </Text>
          {list.length === 0 && <Text size="sm">none</Text>}
          {list.map((rule) => (
            <Code key={`${rule.schema}.${rule.table}`}>{`${rule.schema}.${rule.table}`}</Code>
          ))}
        </Group>
      ))}
    </Panel>
  );
}
