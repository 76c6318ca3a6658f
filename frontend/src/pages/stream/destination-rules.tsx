import { Button, Code, Group, Modal, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { IconPencil } from "@tabler/icons-react";
import { useState } from "react";
import { useUpdateDestination } from "@/api/streams";
import type { Stream, StreamDestination } from "@/api/types";
import { CheckedRequest } from "@/features/preflight/checked-request";
import { useConsents } from "@/features/preflight/use-consents";
import { RowRules } from "@/features/table-rules/row-rules";
import { RuleCountsTable } from "@/features/table-rules/rule-counts";
import { placeInWords } from "@/features/table-rules/rule-scopes";
import { Panel } from "@/ui/panel";

interface DestinationRulesProps {
  stream: Stream;
  mayAct: boolean;
}

/** The rules that destinations have of their own, beside the stream's, and the way to change them. */
export function DestinationRules({ stream, mayAct }: DestinationRulesProps) {
  const [edited, setEdited] = useState<string | null>(null);
  const ruled = stream.destinations.filter(({ row_rules }) => row_rules.length > 0);
  // The stream's rules can say all that the only destination is to have.
  if (stream.destinations.length === 1 && ruled.length === 0) return null;
  const destination = stream.destinations.find(({ id }) => id === edited);
  return (
    <Panel title="Row rules of the destinations">
      <Stack gap="sm">
        {stream.destinations.map(({ id, database, desired_status, row_rules, rule_counts }) => (
          <Stack key={id} gap={4}>
            <Group gap={8}>
              <Button
                size="compact-sm"
                variant="default"
                leftSection={<IconPencil size={13} aria-hidden />}
                aria-label={`Rules of ${database.name}`}
                disabled={!mayAct || stream.desired_status === "DROPPED" || desired_status === "DROPPED"}
                onClick={() => setEdited(id)}
              >
                Rules
              </Button>
              <Text size="sm">{database.name}</Text>
              {row_rules.length === 0 && (
                <Text size="sm" c="dimmed">
                  everything that the stream's rules let pass
                </Text>
              )}
              {row_rules.map(placeInWords).map((place) => (
                <Code key={place}>{place}</Code>
              ))}
            </Group>
            {row_rules.length > 0 && <RuleCountsTable counts={rule_counts} destination={database.name} />}
          </Stack>
        ))}
      </Stack>
      <Modal
        opened={destination !== undefined}
        onClose={() => setEdited(null)}
        title={destination ? `Rules of ${destination.database.name}` : ""}
        size="xl"
      >
        {destination && (
          <RulesForm stream={stream} destination={destination} onClose={() => setEdited(null)} />
        )}
      </Modal>
    </Panel>
  );
}

interface RulesFormProps {
  stream: Stream;
  destination: StreamDestination;
  onClose: () => void;
}

function RulesForm({ stream, destination, onClose }: RulesFormProps) {
  const [rules, setRules] = useState({ ...stream.rules, row_rules: destination.row_rules });
  const update = useUpdateDestination(stream.id, destination.id);
  const consents = useConsents();
  const body = { row_rules: rules.row_rules, ...consents.member };
  return (
    <Stack gap="sm">
      <Text size="sm" c="dimmed">
        These rules apply to this destination only, to rows and changes that the stream's rules let pass.
      </Text>
      <RowRules
        sourceId={stream.source.id}
        captureEngineId={stream.capture_engine.id}
        stream={stream}
        tables={stream.tables}
        rules={rules}
        onChange={(next) => {
          update.reset();
          setRules({ ...rules, row_rules: next.row_rules ?? [] });
        }}
      />
      <CheckedRequest
        error={update.error}
        consents={consents}
        databases={{ [destination.database.id]: destination.database.name }}
        call={{
          method: "PATCH",
          path: `/api/v1/streams/${stream.id}/destinations/${destination.id}`,
          headers: { "If-Match": stream.etag },
          body,
        }}
      />
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button
          loading={update.isPending}
          disabled={!consents.cover(update.error)}
          onClick={() =>
            update.mutate(
              { body, etag: stream.etag },
              {
                onError: consents.keep,
                onSuccess: () => {
                  notifications.show({ title: destination.database.name, message: "Rules saved." });
                  onClose();
                },
              },
            )
          }
        >
          Save rules
        </Button>
      </Group>
    </Stack>
  );
}
