import { Box, Text } from "@mantine/core";
import type { AppliedCure } from "@/api/types";
import { exact, formatTime } from "@/lib/format";
import { AnchorLink } from "@/ui/anchor-link";
import { type Column, DataTable } from "@/ui/data-table";
import { CureOutcome } from "./cure-outcome";

/** Cures that were applied, newest first, and what came of them. */
export function CuresTable({ cures, mayAct }: { cures: AppliedCure[]; mayAct: boolean }) {
  const columns: Column<AppliedCure>[] = [
    {
      key: "at",
      header: "Applied",
      sortBy: (cure) => cure.created_at,
      cell: (cure) => (
        <Box py={3}>
          <Text size="sm" className="numeric">
            {formatTime(cure.created_at)}
          </Text>
          <Text size="xs" c="dimmed">
            by {cure.applied_by}
            {cure.by_hand && ", at the database"}
          </Text>
        </Box>
      ),
    },
    {
      key: "finding",
      header: "Finding",
      cell: (cure) => (
        <Box maw={360}>
          <Text size="sm">{cure.finding.title}</Text>
          {cure.run_id !== null && (
            <AnchorLink to="/advisor/runs/$runId" params={{ runId: String(cure.run_id) }} size="xs">
              Run {cure.run_id}
            </AnchorLink>
          )}
        </Box>
      ),
    },
    {
      key: "change",
      header: "Change",
      cell: (cure) =>
        cure.sql ? (
          <Text size="xs" ff="monospace" maw={420} style={{ overflowWrap: "anywhere" }}>
            {cure.sql}
          </Text>
        ) : cure.by_hand ? (
          <Text size="xs" maw={420}>
            {cure.finding.cures[0]?.text}
          </Text>
        ) : (
          Object.entries(cure.parameters_after).map(([name, value]) => (
            <Text key={name} size="xs" className="numeric">
              <Text span ff="monospace" size="xs">
                {name}
              </Text>{" "}
              {exact(cure.parameters_before[name] ?? "default")} → <strong>{exact(value)}</strong>
              {cure.destination_id && ` at ${cure.destination_id}`}
            </Text>
          ))
        ),
    },
    {
      key: "outcome",
      header: "Outcome",
      align: "right",
      cell: (cure) => (
        <Box py={5}>
          <CureOutcome cure={cure} mayAct={mayAct} />
        </Box>
      ),
    },
  ];
  return (
    <DataTable label="Applied cures" columns={columns} rows={cures} rowKey={(cure) => String(cure.id)} />
  );
}
