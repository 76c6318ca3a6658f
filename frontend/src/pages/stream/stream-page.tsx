import { Badge, Button, Group, Select, Stack, Tabs, Text } from "@mantine/core";
import { IconArrowNarrowRight } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { ProblemError } from "@/api/problem";
import { problemInWords } from "@/api/problem-in-words";
import { sessionQuery } from "@/api/session";
import { streamQuery } from "@/api/streams";
import type { ErrorCause, Stream, StreamError } from "@/api/types";
import { StreamAlerts } from "@/features/alerts/stream-alerts";
import { DestinationErrors } from "@/features/destinations/destination-errors";
import { ERRORS_ID } from "@/features/destinations/error-place";
import { ConflictLog } from "@/features/error-queue/conflict-log";
import { ErrorQueue } from "@/features/error-queue/error-queue";
import { ReadAge } from "@/features/live-status/read-age";
import { StaleBanner } from "@/features/live-status/stale-banner";
import { ParameterEditor } from "@/features/parameters/parameter-editor";
import { StreamActions } from "@/features/stream-actions/stream-actions";
import { StreamErrorPanel } from "@/features/stream-actions/stream-error";
import { StreamOperations } from "@/features/stream-actions/stream-operations";
import { StreamWaits } from "@/features/stream-actions/stream-waits";
import { CopyAgain, tableToCopy } from "@/features/stream-tables/copy-again";
import { StreamTables } from "@/features/stream-tables/stream-tables";
import { TableTroubles } from "@/features/stream-tables/table-troubles";
import { isEngineError } from "@/lib/engine-errors";
import { counted, formatCount } from "@/lib/format";
import { covers } from "@/lib/session-role";
import { streamInWords } from "@/lib/states";
import { parkedSum, sumQuantity } from "@/lib/sums";
import { AnchorLink } from "@/ui/anchor-link";
import { Empty } from "@/ui/faces";
import { PageHeader } from "@/ui/page-header";
import { Panel } from "@/ui/panel";
import { QueryFaces } from "@/ui/query-faces";
import { HealthBadge, ToneBadge } from "@/ui/tone";
import { DestinationRules } from "./destination-rules";
import { StreamCapture } from "./stream-capture";
import { StreamHistory } from "./stream-history";
import { StreamLatency } from "./stream-latency";
import { StreamNow } from "./stream-now";
import { StreamRules } from "./stream-rules";
import { StreamTransactionsTab } from "./stream-transactions";
import { JUDGED_SECONDS, StreamVerdict } from "./stream-verdict";

const route = getRouteApi("/shell/streams/$streamId");

export function StreamPage() {
  const { streamId } = route.useParams();
  const query = useQuery(streamQuery(streamId));
  const status = query.error instanceof ProblemError ? query.error.problem.status : null;
  // 422: what the address names cannot be a stream's id.
  const gone = status === 404 || status === 422;
  if (gone) {
    return (
      <Empty
        title="This stream does not exist"
        actions={
          <Button component={Link} to="/">
            Overview
          </Button>
        }
      >
        It was deleted, or the address is mistyped.
      </Empty>
    );
  }
  return (
    <QueryFaces query={query} inWords={problemInWords} rows={8} loadingLabel="Loading the stream">
      {(stream) => <StreamView stream={stream} readAt={query.dataUpdatedAt} />}
    </QueryFaces>
  );
}

function StreamView({ stream, readAt }: { stream: Stream; readAt: number }) {
  const navigate = route.useNavigate();
  const {
    tab = "now",
    filter = "",
    minutes = 5,
    judged = JUDGED_SECONDS,
    destination,
    cause,
    ...history
  } = route.useSearch();
  const several = stream.destinations.length > 1;
  const queueOf =
    stream.destinations.find(({ id }) => id === destination) ??
    stream.destinations.find(({ error_queue_transactions: parked }) => (parked ?? 0) > 0) ??
    stream.destinations[0];
  const showQueue = (id: string | undefined) =>
    navigate({
      search: (now) => ({ ...now, tab: "errors", destination: id, cause: undefined }),
      replace: true,
    });
  const mayAct = covers(useQuery(sessionQuery).data?.user.role, "operator");
  const parked = parkedSum(stream);
  // The table's own trouble says the same, with its cures.
  const tellsTroubles =
    isEngineError(stream.error, "table_trouble") && stream.tables.some(({ trouble }) => trouble !== null);
  const cureOf = (error: StreamError, at: { id: string; name: string }[]) => (
    <CopyAgain stream={stream} table={tableToCopy(error)} at={at} mayAct={mayAct} />
  );
  const cureOfParked = ({ kind, table }: ErrorCause) =>
    queueOf &&
    (kind === "copy_inconsistent" || kind === "missing_row") && (
      <CopyAgain
        stream={stream}
        table={table}
        at={[{ id: queueOf.id, name: queueOf.database.name }]}
        mayAct={mayAct}
      />
    );
  return (
    <>
      <PageHeader
        title={stream.name}
        beside={
          <>
            <HealthBadge level={stream.health.level} status={stream.status} state={stream.state} />
            <ToneBadge state={streamInWords(stream)} wrap />
            <Text span size="sm" c="dimmed">
              <ReadAge at={readAt}>{(age) => age && `as of ${age}`}</ReadAge>
            </Text>
          </>
        }
        description={<Facts stream={stream} judgedSeconds={judged} />}
        actions={<StreamActions stream={stream} mayAct={mayAct} onDeleted={() => navigate({ to: "/" })} />}
      />
      <Stack gap="sm" mb="xs" id={ERRORS_ID}>
        {!tellsTroubles && <StreamErrorPanel stream={stream} actions={cureOf} />}
        <DestinationErrors stream={stream} actions={cureOf} />
        <StreamWaits stream={stream} />
        {tab !== "tables" && <TableTroubles stream={stream} mayAct={mayAct} most={3} />}
        <StreamOperations stream={stream} />
        <StreamAlerts stream={stream} />
        <StaleBanner streams={[stream]} live />
      </Stack>
      <Tabs
        value={tab}
        onChange={(next) =>
          navigate({
            search: (now) => ({ ...now, tab: next === "now" || next === null ? undefined : next }),
            replace: true,
          })
        }
      >
        <Tabs.List mb="sm">
          <Tabs.Tab value="now">Now</Tabs.Tab>
          <Tabs.Tab value="history">History</Tabs.Tab>
          <Tabs.Tab value="transactions">Transactions</Tabs.Tab>
          <Tabs.Tab value="latency">Latency</Tabs.Tab>
          <Tabs.Tab value="tables">Tables ({stream.tables.length || stream.table_count})</Tabs.Tab>
          <Tabs.Tab value="parameters">Parameters</Tabs.Tab>
          <Tabs.Tab
            value="errors"
            rightSection={
              parked.value ? (
                <Badge size="sm">
                  {sumQuantity(parked, (sum) => ({ value: formatCount(sum), unit: "" })).value}
                </Badge>
              ) : null
            }
          >
            Error queue
          </Tabs.Tab>
          <Tabs.Tab value="conflicts">Conflicts</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="now">
          <StreamNow
            stream={stream}
            mayAct={mayAct}
            onErrorQueue={showQueue}
            minutes={minutes}
            onMinutes={(next) => navigate({ search: (now) => ({ ...now, minutes: next }), replace: true })}
            judgedSeconds={judged}
            onJudgedSeconds={(next) =>
              navigate({ search: (now) => ({ ...now, judged: next }), replace: true })
            }
          />
        </Tabs.Panel>
        <Tabs.Panel value="history">
          <StreamHistory
            stream={stream}
            search={history}
            onSearch={(change) => navigate({ search: (now) => ({ ...now, ...change }), replace: true })}
            mayAct={mayAct}
          />
        </Tabs.Panel>
        <Tabs.Panel value="transactions">
          <StreamTransactionsTab stream={stream} />
        </Tabs.Panel>
        <Tabs.Panel value="latency">
          <StreamLatency stream={stream} mayAct={mayAct} />
        </Tabs.Panel>
        <Tabs.Panel value="tables">
          <Stack gap="sm">
            <TableTroubles stream={stream} mayAct={mayAct} />
            <Panel flush>
              <StreamTables
                stream={stream}
                mayAct={mayAct}
                destinationId={destination}
                onDestination={(id) =>
                  navigate({ search: (now) => ({ ...now, destination: id }), replace: true })
                }
                filter={filter}
                onFilter={(next) =>
                  navigate({ search: (now) => ({ ...now, filter: next || undefined }), replace: true })
                }
              />
            </Panel>
            <StreamRules stream={stream} mayAct={mayAct} />
            <DestinationRules stream={stream} mayAct={mayAct} />
          </Stack>
        </Tabs.Panel>
        <Tabs.Panel value="parameters">
          <Stack gap="sm">
            <StreamCapture stream={stream} mayAct={mayAct} />
            <Panel title="Parameters">
              <ParameterEditor stream={stream} mayAct={mayAct} />
            </Panel>
          </Stack>
        </Tabs.Panel>
        <Tabs.Panel value="errors">
          <Panel
            flush
            title={several && queueOf ? `Error queue of ${queueOf.database.name}` : "Error queue"}
            aside={
              several && (
                <Select
                  size="xs"
                  aria-label="Destination"
                  data={stream.destinations.map(({ id, database }) => ({ value: id, label: database.name }))}
                  value={queueOf?.id ?? null}
                  onChange={(id) => showQueue(id ?? undefined)}
                  allowDeselect={false}
                />
              )
            }
          >
            {queueOf && (
              <ErrorQueue
                streamId={stream.id}
                destinationId={queueOf.id}
                mayAct={mayAct}
                cureOf={cureOfParked}
                cause={cause}
                onCause={(next) => navigate({ search: (now) => ({ ...now, cause: next }), replace: true })}
              />
            )}
          </Panel>
        </Tabs.Panel>
        <Tabs.Panel value="conflicts">
          <Panel
            flush
            title={several && queueOf ? `Conflicts at ${queueOf.database.name}` : "Conflicts"}
            aside={
              several && (
                <Select
                  size="xs"
                  aria-label="Destination"
                  data={stream.destinations.map(({ id, database }) => ({ value: id, label: database.name }))}
                  value={queueOf?.id ?? null}
                  onChange={(id) =>
                    navigate({ search: (now) => ({ ...now, destination: id ?? undefined }), replace: true })
                  }
                  allowDeselect={false}
                />
              )
            }
          >
            {queueOf && <ConflictLog streamId={stream.id} destinationId={queueOf.id} mayAct={mayAct} />}
          </Panel>
        </Tabs.Panel>
      </Tabs>
    </>
  );
}

function enginesInWords({ capture_engine, destinations }: Stream): string {
  const others = new Set(destinations.map(({ engine }) => engine.name));
  others.delete(capture_engine.name);
  return others.size === 0
    ? `engine ${capture_engine.name}`
    : `captured on ${capture_engine.name}, applied on ${[...others].join(", ")}`;
}

function Facts({ stream, judgedSeconds }: { stream: Stream; judgedSeconds: number }) {
  return (
    <Stack gap={2}>
      <Group gap={6}>
        <DatabaseLink {...stream.source} />
        <IconArrowNarrowRight size={15} aria-label="to" />
        {stream.destinations.map(({ id, database }, place) => (
          <span key={id}>
            <DatabaseLink {...database} />
            {place + 1 < stream.destinations.length && ","}
          </span>
        ))}
        <Text size="sm" c="dimmed">
          · {enginesInWords(stream)}
          {stream.capture_kind === "wal" && " · by log mining"} · {counted(stream.table_count, "table")}
        </Text>
        {stream.capture_kind === "wal" && (
          <AnchorLink to="/databases/$databaseId/changes" params={{ databaseId: stream.source.id }} size="sm">
            Search its log for changes
          </AnchorLink>
        )}
      </Group>
      <StreamVerdict stream={stream} seconds={judgedSeconds} />
    </Stack>
  );
}

function DatabaseLink({ id, name, address }: { id: string; name: string; address: string }) {
  return (
    <AnchorLink to="/databases/$databaseId" params={{ databaseId: id }} size="sm" title={address}>
      {name}
    </AnchorLink>
  );
}
