import { Button, Group, Stack, Text } from "@mantine/core";
import { IconCircleCheck } from "@tabler/icons-react";
import { problemInWords } from "@/api/problem-in-words";
import { useDryRun } from "@/api/streams";
import type { DryRun as Outcome } from "@/api/types";
import { ProblemAlert } from "@/ui/problem-alert";
import { RestCallButton } from "@/ui/rest-call";
import { editsInWords } from "./edits-in-words";
import { asRole } from "./role-input";

interface DryRunProps {
  streamId: string;
  destinationId: string;
  errorId: number;
  path: string;
  role: string;
}

/** Has a transaction executed and rolled back, and tells what came of it. */
export function DryRun({ streamId, destinationId, errorId, path, role }: DryRunProps) {
  const tried = useDryRun(streamId, destinationId);
  return (
    <Stack gap="xs">
      <Group gap="sm">
        <Button
          variant="default"
          loading={tried.isPending}
          onClick={() => tried.mutate({ errorId, body: asRole(role) })}
        >
          Dry run
        </Button>
        <Text size="sm" c="dimmed">
          Applies it and rolls it back: its rows are locked for a moment, and nothing changes.
        </Text>
        <RestCallButton
          calls={[{ method: "POST", path: `${path}/${errorId}/dry-run`, body: asRole(role) }]}
        />
      </Group>
      {tried.isError && <ProblemAlert problem={problemInWords(tried.error)} />}
      {tried.data && <Result outcome={tried.data} />}
    </Stack>
  );
}

function Result({ outcome }: { outcome: Outcome }) {
  const nothing = outcome.changes !== null && outcome.left_out === outcome.changes;
  if (outcome.succeeds)
    return (
      <Group gap={6} role="status" wrap="nowrap">
        <IconCircleCheck size={18} color="var(--tone-good)" aria-hidden />
        <Text size="sm">
          {nothing
            ? "It would leave the queue without being applied: all its changes are left out."
            : outcome.left_out + outcome.settled === 0
              ? "It would succeed: the destination accepts all its changes now."
              : "It would succeed: the destination accepts its other changes now."}
          {!nothing && editsInWords(outcome)}
        </Text>
      </Group>
    );
  return (
    <ProblemAlert
      tone="warning"
      problem={{
        title: `It would fail: ${outcome.title}`,
        message: outcome.message,
        cure: outcome.cure,
        code: outcome.code,
        facts: [
          outcome.failed_change !== null && `At change ${outcome.failed_change}`,
          outcome.sqlstate && `SQLSTATE ${outcome.sqlstate}`,
          editsInWords(outcome).trim(),
        ].filter((fact): fact is string => Boolean(fact)),
      }}
    />
  );
}
