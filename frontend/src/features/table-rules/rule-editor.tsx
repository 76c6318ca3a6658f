import { ActionIcon, Box, Button, Group, Stack, Text, TextInput, Title } from "@mantine/core";
import { IconPlus, IconX } from "@tabler/icons-react";
import type { TablePattern, TableRules } from "@/api/types";

interface RuleEditorProps {
  rules: TableRules;
  onChange: (rules: TableRules) => void;
}

/** Table patterns: over schema and table names, to include and to exclude. */
export function RuleEditor({ rules, onChange }: RuleEditorProps) {
  const exclude = rules.exclude ?? [];
  return (
    <Stack gap="md">
      <RuleList
        title="Include"
        description="Replicates the tables that match one of these patterns."
        rules={rules.include}
        onChange={(include) => onChange({ ...rules, include })}
      />
      <RuleList
        title="Exclude"
        description="Leaves out the tables that match one of these, even if they match one above."
        rules={exclude}
        onChange={(next) => onChange({ ...rules, exclude: next })}
      />
      <Text size="xs" c="dimmed">
        * matches any characters, ? matches one. Patterns are case-sensitive.
      </Text>
    </Stack>
  );
}

interface RuleListProps {
  title: "Include" | "Exclude";
  description: string;
  rules: TablePattern[];
  onChange: (rules: TablePattern[]) => void;
}

function RuleList({ title, description, rules, onChange }: RuleListProps) {
  const replace = (index: number, rule: TablePattern) =>
    onChange(rules.map((kept, at) => (at === index ? rule : kept)));
  return (
    <Box component="section" aria-label={`${title} patterns`}>
      <Title order={3}>{title}</Title>
      <Text size="xs" c="dimmed" mb={5}>
        {description}
      </Text>
      <Stack gap={6}>
        {rules.map((rule, index) => {
          const label = `${title} pattern ${index + 1}`;
          return (
            // Patterns have no identity but their place: they are edited in place and never reordered.
            // biome-ignore lint/suspicious/noArrayIndexKey: see above
            <Group key={index} gap={6} wrap="nowrap">
              <TextInput
                data-autofocus={(title === "Include" && index === 0) || undefined}
                aria-label={`${label}, schema`}
                placeholder="schema"
                value={rule.schema}
                onChange={(event) => replace(index, { ...rule, schema: event.currentTarget.value })}
                styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
                flex={2}
              />
              <Text c="dimmed" aria-hidden>
                .
              </Text>
              <TextInput
                aria-label={`${label}, table`}
                placeholder="table"
                value={rule.table}
                onChange={(event) => replace(index, { ...rule, table: event.currentTarget.value })}
                styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
                flex={3}
              />
              <ActionIcon
                aria-label={`Remove ${label.toLowerCase()}`}
                onClick={() => onChange(rules.filter((_, at) => at !== index))}
              >
                <IconX size={15} aria-hidden />
              </ActionIcon>
            </Group>
          );
        })}
        <Group>
          <Button
            size="compact-xs"
            variant="subtle"
            leftSection={<IconPlus size={13} aria-hidden />}
            onClick={() => onChange([...rules, { schema: "public", table: "*" }])}
          >
            Add {title.toLowerCase()} pattern
          </Button>
        </Group>
      </Stack>
    </Box>
  );
}
