import { Box, Group, Stack, Text, Title } from "@mantine/core";
import { IconCircleCheck } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { databasesQuery } from "@/api/databases";
import type { Cure, Finding } from "@/api/types";
import { serversOf } from "@/lib/address";
import { severityInWords } from "@/lib/advisor";
import { exact } from "@/lib/format";
import { CopyBlock } from "@/ui/copy-block";
import { HelpLink } from "@/ui/help-link";
import { useNarrow } from "@/ui/narrow";
import { ToneBadge } from "@/ui/tone";
import { EvidenceTable } from "./evidence-table";
import classes from "./findings.module.css";

interface FindingsProps {
  findings: Finding[];
  /** The paths that the findings are of: where there are several, each finding names its own. */
  paths?: { path_id: string; path_name: string }[];
  /** Actions on a cure: apply it, undo it. */
  cureActions?: (finding: Finding, cure: Cure, index: number) => ReactNode;
}

/** The advisor's findings, the most important first, each with its evidence and the exact change. */
export function Findings({ findings, paths = [], cureActions }: FindingsProps) {
  const nameOf = (id: string) => paths.length > 1 && paths.find(({ path_id }) => path_id === id)?.path_name;
  if (findings.length === 0) {
    return (
      <Group gap={8} c="dimmed">
        <IconCircleCheck size={16} aria-hidden />
        <Text size="sm">The advisor found nothing to cure.</Text>
      </Group>
    );
  }
  return (
    <ol className={classes.list} aria-label="Findings">
      {findings.map((finding) => (
        <FindingItem
          key={finding.id}
          finding={finding}
          path={nameOf(finding.path_id) || null}
          cureActions={cureActions}
        />
      ))}
    </ol>
  );
}

interface FindingItemProps extends Pick<FindingsProps, "cureActions"> {
  finding: Finding;
  path: string | null;
}

function FindingItem({ finding, path, cureActions }: FindingItemProps) {
  return (
    <li className={classes.finding} aria-label={finding.title}>
      <span className={classes.rank} aria-hidden>
        {finding.rank}
      </span>
      <Stack gap={8} miw={0}>
        <Group gap={8}>
          <Title order={3}>{finding.title}</Title>
          <ToneBadge state={severityInWords(finding.severity)} compact />
          {finding.is_cause && (
            <Text size="xs" c="dimmed">
              causes the bottleneck
            </Text>
          )}
          <HelpLink help="reference/findings" entry={finding.code} about={`“${finding.title}”`} />
        </Group>
        {path && (
          <Text size="xs" fw={600}>
            {path}
          </Text>
        )}
        <Text size="sm">{finding.explanation}</Text>
        {finding.expected_gain && (
          <Text size="sm">
            <strong>Expected gain: </strong>
            {finding.expected_gain}
          </Text>
        )}
        {finding.evidence.length > 0 && <EvidenceTable finding={finding} />}
        {finding.cures.map((cure, index) => (
          <CureBlock
            key={cure.text}
            cure={cure}
            first={index === 0}
            actions={cureActions?.(finding, cure, index)}
          />
        ))}
      </Stack>
    </li>
  );
}

function CureBlock({ cure, first, actions }: { cure: Cure; first: boolean; actions: ReactNode }) {
  const wrap = useNarrow() ? "wrap" : "nowrap";
  return (
    <Box className={classes.cure}>
      <Group justify="space-between" align="flex-start" wrap={wrap} gap="md">
        <Box miw={0}>
          <Text size="sm">
            <strong>{first ? "Cure: " : "Or: "}</strong>
            {cure.text}
          </Text>
          {cure.parameters.map((change) => (
            <Text key={change.name} size="sm" className="numeric">
              <Text span ff="monospace" size="xs">
                {change.name}
              </Text>{" "}
              {exact(change.current)} → <strong>{exact(change.proposed)}</strong>
            </Text>
          ))}
          {cure.restart_needed && (
            <Text size="xs" c="dimmed">
              The engine restarts the stream's components for it: changes wait for a moment.
            </Text>
          )}
        </Box>
        {actions}
      </Group>
      {cure.run_as && !cure.index && <WhereToRun cure={cure} />}
      {cure.sql && (
        <Box mt={6}>
          <CopyBlock
            text={cure.sql}
            label={cure.database ? `SQL to run at ${cure.database}` : "SQL"}
            about={cure.text}
            copyLabel="Copy SQL"
          />
        </Box>
      )}
    </Box>
  );
}

/** Thalweg's own user seldom may: whoever does it must know where, and as whom. */
function WhereToRun({ cure }: { cure: Cure }) {
  const databases = useQuery(databasesQuery).data ?? [];
  const at = databases.find(({ id }) => id === cure.database_id);
  return (
    <Text size="sm" mt={6}>
      Thalweg does not run this itself. Run it at <strong>{cure.database}</strong>
      {at && ` (${serversOf(at)}, database ${at.dbname})`} as {cure.run_as}, then check whether it helped.
    </Text>
  );
}
