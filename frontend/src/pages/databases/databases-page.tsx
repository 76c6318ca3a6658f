import { Button, Group, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { IconDatabase, IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { openAlertsQuery } from "@/api/alerts";
import { databasesQuery, useDeleteDatabase, useTestDatabase } from "@/api/databases";
import { problemInWords } from "@/api/problem-in-words";
import { sessionQuery } from "@/api/session";
import type { Database } from "@/api/types";
import { ConnectionTestResult } from "@/features/connection-test/connection-test-result";
import { DatabaseDrawer } from "@/features/database-form/database-drawer";
import { StillUsed } from "@/features/still-used/still-used";
import { addressOf } from "@/lib/address";
import { formatAgo } from "@/lib/format";
import { covers } from "@/lib/session-role";
import type { StateInWords } from "@/lib/states";
import { AnchorLink } from "@/ui/anchor-link";
import { ButtonLink } from "@/ui/button-link";
import { ConfirmByName } from "@/ui/confirm-by-name";
import { type Column, DataTable } from "@/ui/data-table";
import { Empty } from "@/ui/faces";
import { PageHeader } from "@/ui/page-header";
import { Panel } from "@/ui/panel";
import { ProblemAlert } from "@/ui/problem-alert";
import { QueryFaces } from "@/ui/query-faces";
import { RestCallButton } from "@/ui/rest-call";
import { ToneBadge } from "@/ui/tone";
import { testInWords, unreachable, usedBy, versionInWords } from "./database-facts";

type Dialog = { kind: "add" } | { kind: "edit" | "delete"; database: Database } | null;

export function DatabasesPage() {
  const databases = useQuery(databasesQuery);
  const away = unreachable(useQuery(openAlertsQuery).data ?? []);
  const mayAct = covers(useQuery(sessionQuery).data?.user.role, "operator");
  const [dialog, setDialog] = useState<Dialog>(null);
  const close = () => setDialog(null);
  const add = (
    <Button
      leftSection={<IconPlus size={15} aria-hidden />}
      disabled={!mayAct}
      onClick={() => setDialog({ kind: "add" })}
    >
      Add database
    </Button>
  );

  return (
    <>
      <PageHeader
        title="Databases"
        description="PostgreSQL databases that streams capture from or apply to."
        actions={
          <>
            <RestCallButton calls={[{ method: "GET", path: "/api/v1/databases" }]} />
            {add}
          </>
        }
      />
      <QueryFaces query={databases} inWords={problemInWords} loadingLabel="Loading databases">
        {(known) => (
          <Panel flush>
            {known.length === 0 ? (
              <Empty icon={<IconDatabase size={40} stroke={1.5} />} title="No databases yet" actions={add}>
                Register a source and a destination; the connection test says what is missing and how to cure
                it.
              </Empty>
            ) : (
              <DataTable
                label="Databases"
                columns={columns(mayAct, away, setDialog)}
                rows={known}
                rowKey={(database) => database.id}
                cardName={({ name }) => name}
                initialSort={{ key: "name", descending: false }}
              />
            )}
          </Panel>
        )}
      </QueryFaces>
      <DatabaseDrawer
        opened={dialog?.kind === "add" || dialog?.kind === "edit"}
        database={dialog?.kind === "edit" ? dialog.database : null}
        onClose={close}
        renderTest={(test) => <ConnectionTestResult test={test} />}
      />
      {dialog?.kind === "delete" && (
        <DeleteDatabase database={newest(databases.data, dialog.database)} onClose={close} />
      )}
    </>
  );
}

function columns(
  mayAct: boolean,
  away: Map<unknown, StateInWords>,
  open: (dialog: Dialog) => void,
): Column<Database>[] {
  return [
    {
      key: "name",
      header: "Name",
      sortBy: (database) => database.name,
      cell: (database) => (
        <AnchorLink to="/databases/$databaseId" params={{ databaseId: database.id }} fw={600} size="sm">
          {database.name}
        </AnchorLink>
      ),
    },
    {
      key: "address",
      header: "Address",
      sortBy: (database) => database.host,
      cell: (database) => (
        <Text size="xs" ff="monospace">
          {database.user}@{addressOf(database)}
        </Text>
      ),
    },
    {
      key: "version",
      header: "PostgreSQL",
      sortBy: ({ version }) => version,
      cell: versionInWords,
    },
    {
      key: "test",
      header: "Last test",
      definition: "The result and time of the last connection test; and whether an engine reaches it now.",
      cell: (database) => (
        <Group gap={8}>
          <ToneBadge compact wrap state={away.get(database.name) ?? testInWords(database)} />
          <Text size="xs" c="dimmed">
            {database.tested_at ? formatAgo(database.tested_at) : ""}
          </Text>
        </Group>
      ),
    },
    { key: "streams", header: "Used by", cell: usedBy },
    {
      key: "actions",
      header: "Actions",
      cell: (database) => (
        <Group gap={6} wrap="nowrap">
          <TestButton database={database} mayAct={mayAct} />
          {database.source_of.length > 0 && (
            <ButtonLink
              variant="default"
              to="/databases/$databaseId/changes"
              params={{ databaseId: database.id }}
              aria-label={`Changes of ${database.name}`}
            >
              Changes
            </ButtonLink>
          )}
          <Button
            variant="default"
            disabled={!mayAct}
            aria-label={`Edit ${database.name}`}
            onClick={() => open({ kind: "edit", database })}
          >
            Edit
          </Button>
          <Button
            variant="default"
            disabled={!mayAct}
            aria-label={`Delete ${database.name}`}
            onClick={() => open({ kind: "delete", database })}
          >
            Delete
          </Button>
        </Group>
      ),
    },
  ];
}

/** The result shows in the row: connected, or why not. */
function TestButton({ database, mayAct }: { database: Database; mayAct: boolean }) {
  const test = useTestDatabase();
  return (
    <Button
      variant="default"
      disabled={!mayAct}
      aria-label={`Test ${database.name}`}
      loading={test.isPending}
      onClick={() => test.mutate(database.id, { onError: (error) => notifyProblem(database.name, error) })}
    >
      Test
    </Button>
  );
}

function notifyProblem(name: string, error: Error) {
  const { title, message, cure } = problemInWords(error);
  notifications.show({
    title: `${name}: ${title}`,
    message: [message, cure].filter(Boolean).join(" "),
    color: "red",
    autoClose: false,
  });
}

/** As it is listed now: the streams of an open dialog come and go. */
function newest(listed: Database[] | undefined, opened: Database): Database {
  return listed?.find(({ id }) => id === opened.id) ?? opened;
}

function DeleteDatabase({ database, onClose }: { database: Database; onClose: () => void }) {
  const remove = useDeleteDatabase();
  const uses = [
    ...database.source_of.map((streamId) => ({ streamId, as: "source" })),
    ...database.destination_of.map((streamId) => ({ streamId, as: "destination" })),
  ];
  if (uses.length > 0) {
    return (
      <StillUsed title="Delete database" name={database.name} uses={uses} onClose={onClose}>
        Delete these streams first. Where it is one of several destinations, it is enough to drop it from the
        stream.
      </StillUsed>
    );
  }
  return (
    <ConfirmByName
      opened
      onClose={onClose}
      title="Delete database"
      name={database.name}
      call={() => ({ method: "DELETE", path: `/api/v1/databases/${database.id}` })}
      pending={remove.isPending}
      problem={remove.isError && <ProblemAlert problem={problemInWords(remove.error)} />}
      onConfirm={() =>
        remove.mutate(database.id, {
          onSuccess: () => {
            notifications.show({ title: database.name, message: "The database is no longer registered." });
            onClose();
          },
        })
      }
    >
      <Stack gap={4}>
        Thalweg forgets how to connect to {database.name}. The database itself is not touched.
      </Stack>
    </ConfirmByName>
  );
}
