import { Button, Group, Modal, Select, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { databasesQuery } from "@/api/databases";
import { enginesQuery } from "@/api/operations";
import { useAddDestination } from "@/api/streams";
import type { ScopedRules, Stream } from "@/api/types";
import { CheckedRequest } from "@/features/preflight/checked-request";
import { useConsents } from "@/features/preflight/use-consents";
import { RowRules } from "@/features/table-rules/row-rules";

/** One more destination for a stream that exists; checked as at the creation, then copied while the others go on. */
export function AddDestination({ stream, mayAct }: { stream: Stream; mayAct: boolean }) {
  const [opened, setOpened] = useState(false);
  return (
    <>
      <Button
        variant="default"
        leftSection={<IconPlus size={14} aria-hidden />}
        disabled={!mayAct || !stream.actions.includes("add_destination")}
        onClick={() => setOpened(true)}
      >
        Add destination
      </Button>
      <Modal opened={opened} onClose={() => setOpened(false)} title="Add destination" size="lg">
        <AddForm stream={stream} onDone={() => setOpened(false)} />
      </Modal>
    </>
  );
}

function AddForm({ stream, onDone }: { stream: Stream; onDone: () => void }) {
  const databases = useQuery(databasesQuery).data ?? [];
  const engines = useQuery(enginesQuery).data ?? [];
  const [databaseId, setDatabaseId] = useState<string | null>(null);
  const [engineId, setEngineId] = useState<string | null>(stream.capture_engine.id);
  const [rowRules, setRowRules] = useState<ScopedRules[]>([]);
  const consents = useConsents();
  const add = useAddDestination(stream.id);
  const taken = new Set([stream.source.id, ...stream.destinations.map(({ database }) => database.id)]);
  const chosen = databases.find(({ id }) => id === databaseId);
  const free = databases.filter(({ id }) => !taken.has(id));
  const body = {
    database_id: databaseId ?? "",
    ...(engineId && engineId !== stream.capture_engine.id ? { engine_id: engineId } : {}),
    ...(rowRules.length > 0 ? { row_rules: rowRules } : {}),
    ...consents.member,
  };
  /** Another choice is checked anew. A consent is to what a check says, and stays. */
  const choose = (set: (id: string | null) => void) => (id: string | null) => {
    add.reset();
    set(id);
  };
  return (
    <Stack gap="sm">
      <Text size="sm">
        Thalweg copies the tables there, then applies everything that has changed since. The other
        destinations keep going; capture restarts once, so they pause for a moment.
      </Text>
      <Select
        data-autofocus
        label="Database"
        placeholder={free.length === 0 ? "Register another database first" : "Choose one"}
        data={free.map(({ id, name }) => ({ value: id, label: name }))}
        value={databaseId}
        onChange={choose(setDatabaseId)}
      />
      {engines.length > 1 && (
        <Select
          label="Applies"
          description="Best on a host near the destination."
          data={engines.map(({ id, name }) => ({ value: id, label: name }))}
          value={engineId}
          onChange={choose(setEngineId)}
          allowDeselect={false}
        />
      )}
      {chosen && (
        <RowRules
          sourceId={stream.source.id}
          captureEngineId={stream.capture_engine.id}
          stream={stream}
          tables={stream.tables}
          rules={{ ...stream.rules, row_rules: rowRules }}
          onChange={({ row_rules }) => {
            add.reset();
            setRowRules(row_rules ?? []);
          }}
          destination={chosen.name}
        />
      )}
      <CheckedRequest
        error={add.error}
        consents={consents}
        databases={Object.fromEntries(databases.map(({ id, name }) => [id, name]))}
        call={{ method: "POST", path: `/api/v1/streams/${stream.id}/destinations`, body }}
      />
      <Group justify="flex-end">
        <Button variant="default" onClick={onDone}>
          Cancel
        </Button>
        <Button
          disabled={!databaseId || !consents.cover(add.error)}
          loading={add.isPending}
          onClick={() =>
            add.mutate(body, {
              onError: consents.keep,
              onSuccess: () => {
                notifications.show({
                  title: stream.name,
                  message: "The copy to the new destination has been requested.",
                });
                onDone();
              },
            })
          }
        >
          Add destination
        </Button>
      </Group>
    </Stack>
  );
}
