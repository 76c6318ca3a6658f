import { Box, Group, Stack, Text } from "@mantine/core";
import { IconPlugConnected } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { problemInWords } from "@/api/problem-in-words";
import { sessionQuery } from "@/api/session";
import { slotsQuery } from "@/api/slots";
import type { ServerSlot, SlotServer } from "@/api/types";
import { DropSlot } from "@/features/slots/drop-slot";
import { serverInWords } from "@/features/slots/slot-words";
import { SlotsTable } from "@/features/slots/slots-table";
import { formatAgo } from "@/lib/format";
import { covers } from "@/lib/session-role";
import { AnchorLink } from "@/ui/anchor-link";
import { Empty } from "@/ui/faces";
import { HelpLink } from "@/ui/help-link";
import { PageHeader } from "@/ui/page-header";
import { Panel } from "@/ui/panel";
import { ProblemAlert } from "@/ui/problem-alert";
import { QueryFaces } from "@/ui/query-faces";
import { RestCallButton } from "@/ui/rest-call";

export function SlotsPage() {
  const servers = useQuery(slotsQuery);
  const mayAct = covers(useQuery(sessionQuery).data?.user.role, "operator");
  const [dropping, setDropping] = useState<{ server: SlotServer; slot: ServerSlot } | null>(null);
  return (
    <>
      <PageHeader
        title="Slots"
        beside={<HelpLink help="guides/slots" about="slots" />}
        description="All replication slots on the databases' servers, Thalweg's and others'. Each keeps WAL until it is read."
        actions={<RestCallButton calls={[{ method: "GET", path: "/api/v1/slots" }]} />}
      />
      <QueryFaces query={servers} inWords={problemInWords} loadingLabel="Loading slots">
        {(known) =>
          known.length === 0 ? (
            <Panel>
              <Empty icon={<IconPlugConnected size={40} stroke={1.5} />} title="No servers yet">
                A server's slots appear here once one of its databases is registered on the Databases page.
              </Empty>
            </Panel>
          ) : (
            <Stack gap="md">
              {known.map((server) => (
                <Server
                  key={server.address}
                  server={server}
                  mayAct={mayAct}
                  onDrop={(slot) => setDropping({ server, slot })}
                />
              ))}
            </Stack>
          )
        }
      </QueryFaces>
      {dropping && <DropSlot {...dropping} onClose={() => setDropping(null)} />}
    </>
  );
}

interface ServerProps {
  server: SlotServer;
  mayAct: boolean;
  onDrop: (slot: ServerSlot) => void;
}

function Server({ server, mayAct, onDrop }: ServerProps) {
  return (
    <Panel
      flush
      title={server.address}
      aside={
        <Text size="xs" c="dimmed">
          {server.read_at === null ? "never read" : `read ${formatAgo(server.read_at)}`}
        </Text>
      }
    >
      <Box px={14} pb={8}>
        {/* Rows as far apart as the links in them are hit. */}
        <Group gap={8}>
          {server.databases.map((database, number) => (
            <Text span size="sm" key={database.id}>
              <AnchorLink to="/databases/$databaseId" params={{ databaseId: database.id }} size="sm">
                {database.name}
              </AnchorLink>
              {number + 1 < server.databases.length && ","}
            </Text>
          ))}
        </Group>
        {server.other_addresses.length > 0 && (
          <Text size="xs" c="dimmed">
            Also registered as {server.other_addresses.join(", ")}: the same server answers there.
          </Text>
        )}
        <Text size="xs" c="dimmed">
          {serverInWords(server)}
        </Text>
        {server.failure === null &&
          server.databases.map(
            (database) =>
              database.failure !== null && (
                <ProblemAlert
                  key={database.id}
                  tone="warning"
                  problem={{
                    title: `${database.name} did not answer the last time`,
                    message: database.failure,
                    cure: "Test the connection on its page. The server answers its other databases.",
                  }}
                />
              ),
          )}
        {server.failure !== null && (
          <ProblemAlert
            tone="warning"
            problem={{
              title: "The server did not answer the last time",
              message: server.failure,
              cure: "Test the connection on the database's page. The slots shown here are from before.",
            }}
          />
        )}
      </Box>
      {server.read_at !== null && server.slots.length === 0 && (
        <Text px={14} pb={14} size="sm" c="dimmed">
          The server has no replication slots: it keeps no WAL for any.
        </Text>
      )}
      {server.slots.length > 0 && (
        <SlotsTable
          label={`Slots of ${server.address}`}
          slots={server.slots}
          mayAct={mayAct}
          onDrop={onDrop}
        />
      )}
    </Panel>
  );
}
