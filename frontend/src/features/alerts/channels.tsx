import { Button, Group, Text } from "@mantine/core";
import { IconSend } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { channelsQuery, useDeleteChannel, useTestChannel } from "@/api/alerts";
import { problemInWords } from "@/api/problem-in-words";
import type { AlertChannel } from "@/api/types";
import { asText, formatAgo, latencyMs } from "@/lib/format";
import { ConfirmByName } from "@/ui/confirm-by-name";
import { type Column, DataTable } from "@/ui/data-table";
import { Empty } from "@/ui/faces";
import { Panel } from "@/ui/panel";
import { ProblemAlert } from "@/ui/problem-alert";
import { QueryFaces } from "@/ui/query-faces";
import { ToneBadge } from "@/ui/tone";
import { ChannelDrawer } from "./channel-drawer";
import { deliveryInWords, targetInWords } from "./words";

const kinds = { webhook: "Webhook", email: "E-mail", log: "Log" } as const;

interface ChannelsProps {
  mayTest: boolean;
  mayChange: boolean;
}

export function Channels({ mayTest, mayChange }: ChannelsProps) {
  const query = useQuery(channelsQuery);
  const test = useTestChannel();
  const [editing, setEditing] = useState<AlertChannel | "new" | null>(null);
  const [removing, setRemoving] = useState<AlertChannel | null>(null);
  const remove = useDeleteChannel();
  const add = mayChange && <Button onClick={() => setEditing("new")}>Add channel</Button>;
  const columns: Column<AlertChannel>[] = [
    { key: "name", header: "Name", sortBy: ({ name }) => name, cell: ({ name }) => name },
    { key: "kind", header: "Kind", sortBy: ({ kind }) => kind, cell: ({ kind }) => kinds[kind] },
    {
      key: "to",
      header: "Recipient",
      cell: (channel) => <span style={{ overflowWrap: "anywhere" }}>{targetInWords(channel)}</span>,
      width: "30%",
    },
    {
      key: "takes",
      header: "Sends",
      cell: ({ enabled, min_severity, send_resolved }) =>
        enabled
          ? `${min_severity === "critical" ? "Critical only" : "All"}${send_resolved ? ", and when they end" : ""}`
          : "Nothing: switched off",
    },
    {
      key: "last",
      header: "Last delivery",
      cell: ({ last_delivery: last }) =>
        last === null ? (
          "–"
        ) : (
          <>
            <ToneBadge compact state={deliveryInWords(last)} />{" "}
            <Text span size="xs" c="dimmed">
              {formatAgo(last.finished_at ?? last.created_at)}
            </Text>
          </>
        ),
    },
    {
      key: "actions",
      header: "Actions",
      cell: (channel) => (
        <Group gap={6} wrap="nowrap">
          {mayTest && (
            <Button
              variant="default"
              aria-label={`Test ${channel.name}`}
              loading={test.isPending && test.variables === channel.id}
              onClick={() => test.mutate(channel.id)}
            >
              Test
            </Button>
          )}
          {mayChange && (
            <>
              <Button
                variant="default"
                aria-label={`Edit ${channel.name}`}
                onClick={() => setEditing(channel)}
              >
                Edit
              </Button>
              <Button
                variant="default"
                aria-label={`Remove ${channel.name}`}
                onClick={() => setRemoving(channel)}
              >
                Remove
              </Button>
            </>
          )}
        </Group>
      ),
    },
  ];
  return (
    <Panel flush title="Channels" aside={add}>
      {test.isError && <ProblemAlert problem={problemInWords(test.error)} />}
      {test.data && <TestResult delivery={test.data} />}
      <QueryFaces query={query} inWords={problemInWords} loadingLabel="Loading channels">
        {(channels) =>
          channels.length === 0 ? (
            <Empty icon={<IconSend size={36} stroke={1.5} />} title="No channels yet" actions={add}>
              Alerts appear only in the console. Add a webhook, mail addresses or the log, then press Test.
            </Empty>
          ) : (
            <DataTable label="Channels" columns={columns} rows={channels} rowKey={({ id }) => id} />
          )
        }
      </QueryFaces>
      <ChannelDrawer
        opened={editing !== null}
        channel={editing === "new" ? null : editing}
        onClose={() => setEditing(null)}
      />
      {removing && (
        <ConfirmByName
          opened
          name={removing.name}
          title={`Remove ${removing.name}`}
          pending={remove.isPending}
          problem={remove.isError && <ProblemAlert problem={problemInWords(remove.error)} />}
          call={() => ({ method: "DELETE", path: `/api/v1/alerts/channels/${removing.id}` })}
          onClose={() => {
            remove.reset();
            setRemoving(null);
          }}
          onConfirm={() => remove.mutate(removing.id, { onSuccess: () => setRemoving(null) })}
        >
          Notices are no longer sent there, and the list of its deliveries is deleted.
        </ConfirmByName>
      )}
    </Panel>
  );
}

function TestResult({ delivery }: { delivery: NonNullable<AlertChannel["last_delivery"]> }) {
  if (delivery.error === null)
    return (
      <Text size="sm" p="sm" role="status">
        The test reached {delivery.channel_name}
        {delivery.took_ms !== null && ` in ${asText(latencyMs(delivery.took_ms))}`}.
      </Text>
    );
  return (
    <ProblemAlert
      problem={{
        title: `The test did not reach ${delivery.channel_name}`,
        message: delivery.error.message,
        cure: delivery.error.cure,
        code: delivery.error.code,
      }}
    />
  );
}
