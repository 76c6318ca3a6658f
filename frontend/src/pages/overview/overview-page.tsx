import { Button, SimpleGrid, Stack, Text } from "@mantine/core";
import { IconPlus, IconRoute } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { databasesQuery } from "@/api/databases";
import { problemInWords } from "@/api/problem-in-words";
import { sessionQuery } from "@/api/session";
import { overviewQuery } from "@/api/streams";
import { ReadAge } from "@/features/live-status/read-age";
import { StaleBanner } from "@/features/live-status/stale-banner";
import { StreamsTable } from "@/features/streams-table/streams-table";
import { OverviewTotals } from "@/features/streams-table/totals";
import { covers } from "@/lib/session-role";
import { Empty } from "@/ui/faces";
import { PageHeader } from "@/ui/page-header";
import { Panel } from "@/ui/panel";
import { QueryFaces } from "@/ui/query-faces";
import { RestCallButton } from "@/ui/rest-call";
import { FirstSteps, wizardInWords } from "./first-steps";

export function OverviewPage() {
  const overview = useQuery(overviewQuery);
  const session = useQuery(sessionQuery).data;
  const databases = useQuery(databasesQuery).data;
  const mayCreate = covers(session?.user.role, "operator");
  const create = mayCreate && (
    <Button component={Link} to="/streams/new" leftSection={<IconPlus size={15} aria-hidden />}>
      Create stream
    </Button>
  );
  return (
    <>
      <PageHeader
        title="Overview"
        description={
          <ReadAge at={overview.dataUpdatedAt || Date.now()}>
            {(age) =>
              age
                ? `All streams, and how they were doing ${age}.`
                : "All streams, and how they are doing now."
            }
          </ReadAge>
        }
        actions={
          <>
            <RestCallButton calls={[{ method: "GET", path: "/api/v1/overview" }]} />
            {create}
          </>
        }
      />
      <QueryFaces query={overview} inWords={problemInWords} loadingLabel="Loading streams">
        {(data) =>
          data.streams.length === 0 ? (
            <Stack gap="sm">
              <Panel>
                <Empty icon={<IconRoute size={40} stroke={1.5} />} title="No streams yet" actions={create}>
                  A stream replicates tables from one PostgreSQL database to another: first the existing rows,
                  then every change. {wizardInWords(databases?.length !== 0)}
                  {!mayCreate && (
                    <Text size="sm">Your role can only read: ask an operator to create one.</Text>
                  )}
                </Empty>
              </Panel>
              <FirstSteps mayCreate={mayCreate} hasStream={false} />
            </Stack>
          ) : (
            <Stack gap="sm">
              <StaleBanner streams={data.streams} live={data.live} />
              <SimpleGrid cols={{ base: 2, md: 5 }} spacing="sm">
                <OverviewTotals overview={data} />
              </SimpleGrid>
              <Panel flush title="Streams">
                <StreamsTable streams={data.streams} />
              </Panel>
              {data.streams.length === 1 && <FirstSteps mayCreate={mayCreate} hasStream />}
            </Stack>
          )
        }
      </QueryFaces>
    </>
  );
}
