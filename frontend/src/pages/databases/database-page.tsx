import { Button, Group, SegmentedControl, Stack, Text } from "@mantine/core";
import { IconFileSearch, IconPlugConnected, IconRefresh } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import {
  type DatabaseRole,
  databasePreflightQuery,
  databaseQuery,
  tablesQuery,
  useTestDatabase,
} from "@/api/databases";
import { problemInWords } from "@/api/problem-in-words";
import { sessionQuery } from "@/api/session";
import type { Database } from "@/api/types";
import { ConnectionTestResult } from "@/features/connection-test/connection-test-result";
import { CheckList } from "@/features/preflight/check-list";
import { SourceTables } from "@/features/table-rules/source-tables";
import { addressOf } from "@/lib/address";
import { covers } from "@/lib/session-role";
import { ButtonLink } from "@/ui/button-link";
import { PageHeader } from "@/ui/page-header";
import { Panel } from "@/ui/panel";
import { ProblemAlert } from "@/ui/problem-alert";
import { QueryFaces } from "@/ui/query-faces";
import { RestCallButton } from "@/ui/rest-call";
import { ToneBadge } from "@/ui/tone";
import { testInWords, usedBy, usualRole, versionInWords } from "./database-facts";

const route = getRouteApi("/shell/databases/$databaseId");

export function DatabasePage() {
  const { databaseId } = route.useParams();
  const database = useQuery(databaseQuery(databaseId));
  return (
    <QueryFaces query={database} inWords={problemInWords} loadingLabel="Loading the database">
      {(known) => <DatabaseView database={known} />}
    </QueryFaces>
  );
}

function DatabaseView({ database }: { database: Database }) {
  const test = useTestDatabase();
  const mayAct = covers(useQuery(sessionQuery).data?.user.role, "operator");
  const path = `/api/v1/databases/${database.id}`;
  return (
    <>
      <PageHeader
        title={database.name}
        beside={<ToneBadge state={testInWords(database)} />}
        description={
          <Group gap="md">
            <Text size="xs" ff="monospace" c="dimmed">
              {database.user}@{addressOf(database)}
            </Text>
            <Text size="sm">PostgreSQL {versionInWords(database)}</Text>
            <Text size="sm">TLS {database.sslmode}</Text>
            {database.read_from === "standby" && <Text size="sm">Read from the standby</Text>}
            <Text size="sm">{usedBy(database)}</Text>
          </Group>
        }
        actions={
          <>
            <RestCallButton
              label="REST calls"
              calls={[
                { method: "GET", path },
                { method: "POST", path: `${path}/test` },
                { method: "GET", path: `${path}/preflight?role=${usualRole(database)}` },
                { method: "GET", path: `${path}/tables` },
              ]}
            />
            {database.source_of.length > 0 && (
              <ButtonLink
                variant="default"
                leftSection={<IconFileSearch size={14} aria-hidden />}
                to="/databases/$databaseId/changes"
                params={{ databaseId: database.id }}
              >
                Changes
              </ButtonLink>
            )}
            <Button
              leftSection={<IconPlugConnected size={14} aria-hidden />}
              loading={test.isPending}
              disabled={!mayAct}
              onClick={() => test.mutate(database.id)}
            >
              Test connection
            </Button>
          </>
        }
      />
      <Stack gap="sm">
        {test.isError && <ProblemAlert problem={problemInWords(test.error)} />}
        {test.data && <ConnectionTestResult test={test.data} />}
        <DatabasePreflight database={database} />
        <DatabaseTables database={database} />
      </Stack>
    </>
  );
}

function DatabasePreflight({ database }: { database: Database }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const role: DatabaseRole = search.role ?? usualRole(database);
  const preflight = useQuery(databasePreflightQuery(database.id, role));
  return (
    <Panel
      title="Preflight"
      aside={
        <>
          <SegmentedControl
            size="xs"
            aria-label="Checked as"
            value={role}
            onChange={(value) =>
              navigate({
                search: { role: value === "destination" ? "destination" : "source" },
                replace: true,
              })
            }
            data={[
              { value: "source", label: "As a source" },
              { value: "destination", label: "As a destination" },
            ]}
          />
          <Button
            variant="default"
            leftSection={<IconRefresh size={14} aria-hidden />}
            loading={preflight.isFetching}
            onClick={() => preflight.refetch()}
          >
            Run again
          </Button>
        </>
      }
    >
      <QueryFaces query={preflight} inWords={problemInWords} loadingLabel="Checking">
        {(known) => <CheckList checks={known.checks} />}
      </QueryFaces>
    </Panel>
  );
}

function DatabaseTables({ database }: { database: Database }) {
  const tables = useQuery(tablesQuery(database.id));
  return (
    <Panel flush title="Tables">
      <QueryFaces query={tables} inWords={problemInWords} loadingLabel="Reading the catalogue">
        {(known) => <SourceTables tables={known} />}
      </QueryFaces>
    </Panel>
  );
}
