import { Group, SimpleGrid, Text } from "@mantine/core";
import type { FactSheet } from "@/api/types";
import { formatTime } from "@/lib/format";
import { DataTable } from "@/ui/data-table";
import { Panel } from "@/ui/panel";
import { ToneIcon } from "@/ui/tone";

/** Facts from the databases' own catalogues, as of the time of the run. */
export function RunFacts({ sheets }: { sheets: FactSheet[] }) {
  if (sheets.length === 0) return null;
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="sm">
      {sheets.map((sheet) => (
        <Panel
          key={`${sheet.side} ${sheet.database}`}
          flush
          title={`${sheet.side === "destination" ? "Destination" : "Source"} ${sheet.database}`}
          aside={
            <Text size="xs" c="dimmed">
              read {formatTime(sheet.queried_at)}
            </Text>
          }
        >
          {sheet.error && (
            <Group gap={6} px={14} pb={6} wrap="nowrap">
              <ToneIcon tone="warning" />
              <Text size="sm">{sheet.error}</Text>
            </Group>
          )}
          <DataTable
            label={`Facts of ${sheet.database}`}
            columns={[
              { key: "name", header: "Fact", cell: (fact) => fact.name },
              { key: "value", header: "Value", cell: (fact) => fact.value },
            ]}
            rows={sheet.facts}
            rowKey={(fact) => fact.name}
            empty={
              sheet.error
                ? "Nothing was read. Take another snapshot once that is cured."
                : "The advisor needed no facts of this database."
            }
            maxHeight={260}
          />
        </Panel>
      ))}
    </SimpleGrid>
  );
}
