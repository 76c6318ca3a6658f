import { Group, Stack, Text } from "@mantine/core";
import type { TablePreview } from "@/api/types";
import { asText, bytes } from "@/lib/format";
import { estimatedRows } from "@/lib/sums";
import { ProblemAlert } from "@/ui/problem-alert";
import { ToneIcon } from "@/ui/tone";

/** The tables that the rules match at the source, as the API answers. */
export function RulePreview({ preview, updating }: { preview: TablePreview; updating: boolean }) {
  const refused = preview.tables.filter((table) => !table.replicable);
  return (
    <Stack gap="xs" aria-busy={updating}>
      <Group gap={7} role="status">
        <ToneIcon tone={preview.replicable > 0 ? "good" : "warning"} />
        <Text size="sm" fw={600} className="numeric">
          {preview.replicable} {preview.replicable === 1 ? "table" : "tables"} will be replicated,{" "}
          {estimatedRows(preview.tables)}, {asText(bytes(preview.bytes))}
        </Text>
        {updating && (
          <Text size="xs" c="dimmed">
            updating …
          </Text>
        )}
      </Group>
      {preview.unmatched.length > 0 && (
        <ProblemAlert
          tone="warning"
          problem={{
            title: "A table pattern matches nothing",
            message: `No table matches ${preview.unmatched.join(", ")}.`,
            cure: "Correct the pattern, or leave it: patterns are matched now and whenever they are saved.",
          }}
        />
      )}
      {refused.length > 0 && (
        <ProblemAlert
          problem={{
            title: `${refused.length} matched ${refused.length === 1 ? "table" : "tables"} cannot be replicated`,
            parts: refused.map((table) => ({
              pointer: `${table.schema}.${table.table}`,
              message: table.unsupported.join(" "),
            })),
            cure: refused.some((table) => !table.identified)
              ? "Fix this at the source, exclude the table, or replicate its inserts only."
              : "Fix this at the source, or exclude the table.",
          }}
        />
      )}
    </Stack>
  );
}
