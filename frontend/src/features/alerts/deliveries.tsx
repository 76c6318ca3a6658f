import { Button, Text } from "@mantine/core";
import { IconSend } from "@tabler/icons-react";
import { useInfiniteQuery } from "@tanstack/react-query";
import { deliveriesQuery, useRetryDelivery } from "@/api/alerts";
import { problemInWords } from "@/api/problem-in-words";
import type { AlertDelivery } from "@/api/types";
import { formatTime } from "@/lib/format";
import { type Column, DataTable } from "@/ui/data-table";
import { Empty } from "@/ui/faces";
import { Panel } from "@/ui/panel";
import { ProblemAlert } from "@/ui/problem-alert";
import { QueryFaces } from "@/ui/query-faces";
import { ShowOlder } from "@/ui/show-older";
import { ToneBadge } from "@/ui/tone";
import { deliveryInWords } from "./words";

const events = { firing: "Fired", resolved: "Ended", test: "Test" } as const;

export function Deliveries({ mayAct }: { mayAct: boolean }) {
  const query = useInfiniteQuery(deliveriesQuery);
  const retry = useRetryDelivery();
  const columns: Column<AlertDelivery>[] = [
    {
      key: "at",
      header: "Time",
      cell: ({ created_at }) => <span style={{ whiteSpace: "nowrap" }}>{formatTime(created_at)}</span>,
      width: 150,
    },
    { key: "channel", header: "Channel", cell: ({ channel_name }) => channel_name },
    { key: "title", header: "Notice", cell: ({ event, title }) => `${events[event]}: ${title}` },
    {
      key: "state",
      header: "State",
      cell: (delivery) => <ToneBadge compact state={deliveryInWords(delivery)} />,
    },
    { key: "tries", header: "Attempts", align: "right", cell: ({ tries }) => tries },
    {
      key: "error",
      header: "Error and cure",
      cell: ({ error, next_try_at }) =>
        error === null ? (
          "–"
        ) : (
          <Text size="xs" style={{ overflowWrap: "anywhere" }}>
            {error.message} <strong>Cure:</strong> {error.cure}
            {next_try_at && ` Next try ${formatTime(next_try_at)}.`}
          </Text>
        ),
      width: "34%",
    },
    {
      key: "actions",
      header: "Actions",
      cell: ({ id, state, event, title }) =>
        mayAct && state !== "delivered" && event !== "test" ? (
          <Button
            variant="default"
            aria-label={`Try again: ${title}`}
            loading={retry.isPending && retry.variables === id}
            onClick={() => retry.mutate(id)}
          >
            Try again
          </Button>
        ) : null,
    },
  ];
  return (
    <Panel flush title="Deliveries">
      {retry.isError && <ProblemAlert problem={problemInWords(retry.error)} />}
      <QueryFaces query={query} inWords={problemInWords} loadingLabel="Loading deliveries">
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.items);
          return (
            <>
              {rows.length === 0 ? (
                <Empty icon={<IconSend size={36} stroke={1.5} />} title="Nothing has been sent yet">
                  Each notice that an alert sends through a channel is listed here. Press Test beside a
                  channel to send one now.
                </Empty>
              ) : (
                <DataTable label="Deliveries" columns={columns} rows={rows} rowKey={({ id }) => id} />
              )}
              <ShowOlder query={query} />
            </>
          );
        }}
      </QueryFaces>
    </Panel>
  );
}
