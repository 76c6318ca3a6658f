import { Button, Group, Stack, Text } from "@mantine/core";
import { IconFileSearch } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { databaseQuery } from "@/api/databases";
import { problemInWords } from "@/api/problem-in-words";
import { searchesQuery, searchQuery, useBeginSearch, useEndSearch } from "@/api/searches";
import { sessionQuery } from "@/api/session";
import type { Database, Search, Searches } from "@/api/types";
import { ChangeList } from "@/features/changes/change-list";
import { SearchForm } from "@/features/changes/search-form";
import { SearchProgress } from "@/features/changes/search-progress";
import { asText, bytes, formatTime, parseTime } from "@/lib/format";
import { covers } from "@/lib/session-role";
import { AnchorLink } from "@/ui/anchor-link";
import { Empty } from "@/ui/faces";
import { HelpLink } from "@/ui/help-link";
import { PageHeader } from "@/ui/page-header";
import { Panel } from "@/ui/panel";
import { ProblemAlert } from "@/ui/problem-alert";
import { QueryFaces } from "@/ui/query-faces";
import { RestCallButton } from "@/ui/rest-call";

const route = getRouteApi("/shell/databases/$databaseId/changes");

export function ChangesPage() {
  const { databaseId } = route.useParams();
  const database = useQuery(databaseQuery(databaseId));
  const session = useQuery(sessionQuery);
  return (
    <QueryFaces query={database} inWords={problemInWords} loadingLabel="Loading the database">
      {(known) => (
        <>
          <ChangesHeader database={known} />
          {covers(session.data?.user.role, "operator") ? (
            <ChangesView databaseId={known.id} />
          ) : (
            <Panel>
              <Empty title="Only operators may search">
                A search finds rows of tables. Ask an admin for the role.
              </Empty>
            </Panel>
          )}
        </>
      )}
    </QueryFaces>
  );
}

function ChangesHeader({ database }: { database: Database }) {
  const path = `/api/v1/sources/${database.id}/searches`;
  return (
    <PageHeader
      title={`Changes of ${database.name}`}
      description={
        <Group gap="md">
          <Text size="sm">Find out who changed a row, when, from what to what, in which transaction.</Text>
          <AnchorLink to="/databases/$databaseId" params={{ databaseId: database.id }} size="sm">
            {database.name}
          </AnchorLink>
          <HelpLink help="guides/log-search" about="searches in the log" />
        </Group>
      }
      actions={
        <RestCallButton
          label="REST calls"
          calls={[
            { method: "GET", path },
            {
              method: "POST",
              path,
              body: { table: { schema: "public", table: "orders" }, key: { id: "5" } },
            },
            { method: "GET", path: `${path}/SEARCH_ID` },
            { method: "DELETE", path: `${path}/SEARCH_ID` },
            { method: "GET", path: `/api/v1/sources/${database.id}/changes?table=public.orders&key=id=5` },
          ]}
        />
      }
    />
  );
}

function ChangesView({ databaseId }: { databaseId: string }) {
  const { search, table } = route.useSearch();
  const navigate = route.useNavigate();
  const kept = useQuery(searchesQuery(databaseId));
  const begin = useBeginSearch(databaseId);
  const show = (id: string | undefined) => navigate({ search: (now) => ({ ...now, search: id }) });
  return (
    <QueryFaces query={kept} inWords={problemInWords} loadingLabel="Asking what is kept of the log">
      {(known) => (
        <Stack gap="sm">
          {known.streams.length > 0 ? (
            <Panel flush title="Search" aside={<Kept streams={known.streams} />}>
              <SearchForm
                databaseId={databaseId}
                streams={known.streams}
                table={table}
                pending={begin.isPending}
                onSearch={(body) => begin.mutate(body, { onSuccess: ({ id }) => show(id) })}
              />
              {begin.isError && <ProblemAlert problem={problemInWords(begin.error)} />}
            </Panel>
          ) : (
            <Unsearchable known={known} onRetry={() => kept.refetch()} />
          )}
          {search && (
            <Result
              key={search}
              databaseId={databaseId}
              searchId={search}
              streams={known.streams}
              from={begin.data?.id === search ? begin.variables?.from_time : undefined}
              onEnded={() => show(undefined)}
            />
          )}
        </Stack>
      )}
    </QueryFaces>
  );
}

/** From when on can be searched. */
function Kept({ streams }: { streams: Searches["streams"] }) {
  return (
    <Stack gap={2}>
      {streams.map(({ stream_id, stream_name, kept_from, kept_from_time, kept_bytes }) => (
        <Text key={stream_id} size="xs" c="dimmed">
          {stream_name} keeps {asText(bytes(kept_bytes))} of the log, from{" "}
          {kept_from_time ? formatTime(kept_from_time) : kept_from} on
        </Text>
      ))}
    </Stack>
  );
}

function Unsearchable({ known, onRetry }: { known: Searches; onRetry: () => void }) {
  return (
    <Panel>
      <Empty
        icon={<IconFileSearch size={40} stroke={1.5} />}
        title="The log cannot be searched"
        actions={
          <Button variant="default" onClick={onRetry}>
            Try again
          </Button>
        }
      >
        {known.reason}
      </Empty>
      <Stack gap="xs">
        {known.unavailable.map(({ stream_id, stream_name, message, cure, code }) => (
          <ProblemAlert
            key={stream_id}
            tone="warning"
            problem={{ title: stream_name, message, cure, code }}
          />
        ))}
      </Stack>
    </Panel>
  );
}

interface ResultProps {
  databaseId: string;
  searchId: string;
  streams: Searches["streams"];
  /** Where the search was to begin, if it began here. */
  from?: string | null;
  onEnded: () => void;
}

function Result({ databaseId, searchId, streams, from, onEnded }: ResultProps) {
  const progress = useQuery(searchQuery(databaseId, searchId));
  const end = useEndSearch(databaseId);
  return (
    <Panel flush title="Found">
      <QueryFaces query={progress} inWords={problemInWords} loadingLabel="Looking at the search">
        {(search) => (
          <>
            <Earlier search={search} streams={streams} from={from} />
            {search.state === "RUNNING" && (
              <SearchProgress
                search={search}
                ending={end.isPending}
                onEnd={() => end.mutate(searchId, { onSuccess: onEnded })}
              />
            )}
            {end.isError && <ProblemAlert problem={problemInWords(end.error)} />}
            {search.state === "FAILED" && search.error && (
              <ProblemAlert problem={{ title: "The search failed", ...search.error }} />
            )}
            {(search.state === "DONE" || (search.state === "FAILED" && search.found > 0)) && (
              <ChangeList databaseId={databaseId} search={search} />
            )}
          </>
        )}
      </QueryFaces>
    </Panel>
  );
}

/** A range that begins before what is kept is searched in part. */
function Earlier({
  search,
  streams,
  from,
}: {
  search: Search;
  streams: Searches["streams"];
  from?: string | null;
}) {
  const kept = streams.find(({ stream_id }) => stream_id === search.stream_id)?.kept_from_time;
  const [wanted, since] = [parseTime(from), parseTime(kept)];
  if (!kept || wanted === null || since === null || wanted >= since) return null;
  return (
    <Text size="sm" px={14} pt={10} role="note">
      The log is kept from {formatTime(kept)} on: earlier changes are not found.
    </Text>
  );
}
