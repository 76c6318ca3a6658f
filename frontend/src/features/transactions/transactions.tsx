import { Group, SegmentedControl, Stack, Text } from "@mantine/core";
import { IconArrowsExchange } from "@tabler/icons-react";
import { useState } from "react";
import type { Stream, StreamDestination, StreamTransactions, Transaction } from "@/api/types";
import { asText, bytes, compactCount, counted, duration, formatTime } from "@/lib/format";
import { type ShownState, stateInWords } from "@/lib/states";
import { oldestParked } from "@/lib/sums";
import { AnchorLink } from "@/ui/anchor-link";
import { type Column, DataTable } from "@/ui/data-table";
import { Empty } from "@/ui/faces";
import { useNarrow } from "@/ui/narrow";
import { Panel } from "@/ui/panel";
import { Quantity } from "@/ui/quantity";
import { StateBadge } from "@/ui/tone";
import { type Kind, kinds, ofKind } from "./sums";

/** Transactions of the source that are not committed at the destination yet. */
export function Transactions({ now, stream }: { now: StreamTransactions; stream: Stream }) {
  const [kind, setKind] = useState<Kind>("all");
  const narrow = useNarrow();
  const rows = ofKind(now.transactions, kind);
  const total = now.open + now.waiting + now.executing;
  const several = now.transactions.some(({ destination_id }) => destination_id !== null);
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <SegmentedControl
          size="xs"
          orientation={narrow ? "vertical" : "horizontal"}
          aria-label="Transactions to show"
          value={kind}
          onChange={(value) => setKind(value as Kind)}
          data={kinds.map(({ kind, label }) => ({
            value: kind,
            label: `${label} (${ofKind(now.transactions, kind).length})`,
          }))}
        />
        <Text size="xs" c="dimmed">
          {now.open} open, {now.waiting} waiting, {now.executing} executing,{" "}
          {asText(compactCount(now.queued_lcrs, "LCR"))} not grouped yet
        </Text>
      </Group>
      <Panel flush>
        {now.transactions.length === 0 ? (
          <Empty icon={<IconArrowsExchange size={36} stroke={1.5} />} title="No transactions in flight">
            <NothingInFlight stream={stream} />
          </Empty>
        ) : (
          <DataTable
            label="Transactions"
            columns={columns(several, stream.destinations)}
            rows={rows}
            rowKey={({ destination_id, xid }) => `${destination_id} ${xid}`}
            initialSort={{ key: "age", descending: true }}
            empty="No transaction is in this state now. Choose another state, or all."
            maxHeight={560}
          />
        )}
      </Panel>
      {total > now.transactions.length && (
        <Text size="xs" c="dimmed">
          The largest and oldest {now.transactions.length} of {total} are listed.
        </Text>
      )}
    </Stack>
  );
}

/** An apply that does not run tells of nothing. */
const APPLY: readonly ShownState[] = ["REPLICATING", "CATCHING UP", "PARKING", "STALLED"];

function parkedInWords(count: number | null) {
  return count === null ? "an unknown number of transactions" : counted(count, "transaction");
}

/** Parked transactions are no longer on their way, and not committed either. */
function NothingInFlight({ stream: { id, destinations } }: { stream: Stream }) {
  const resting = destinations.filter(({ state }) => !APPLY.includes(state));
  if (resting.length > 0) {
    const names = resting.map(({ database, state }) => `${database.name} (${stateInWords(state).label})`);
    return `Transactions waiting for ${names.join(", ")} are not listed here.`;
  }
  const where = destinations.length > 1 ? "at all destinations" : "at the destination";
  const parking = destinations.filter(({ error_queue_transactions }) => error_queue_transactions !== 0);
  if (parking.length === 0) return `Every transaction received so far is committed ${where}.`;
  return (
    <>
      Every transaction received so far is committed {where}, except those that are parked:{" "}
      {parking.map((destination, place) => (
        <span key={destination.id}>
          {place > 0 && ", "}
          <AnchorLink
            to="/streams/$streamId"
            params={{ streamId: id }}
            search={{ tab: "errors", destination: destination.id }}
          >
            {parkedInWords(destination.error_queue_transactions)} in the error queue of{" "}
            {destination.database.name}
          </AnchorLink>
          {destination.error_queue_oldest_at && ` (${oldestParked([destination])})`}
        </span>
      ))}
      .
    </>
  );
}

function columns(several: boolean, destinations: StreamDestination[]): Column<Transaction>[] {
  const nameOf = (id: string | null) =>
    destinations.find((destination) => destination.id === id)?.database.name ?? id;
  const all: (Column<Transaction> | false)[] = [
    {
      key: "xid",
      header: "Transaction",
      definition: "Transaction ID at the source.",
      sortBy: ({ xid }) => xid,
      cell: ({ xid }) => <Text size="sm">{xid}</Text>,
    },
    several && {
      key: "destination",
      header: "Destination",
      sortBy: ({ destination_id }) => nameOf(destination_id),
      cell: ({ destination_id }) => nameOf(destination_id) ?? "all",
    },
    {
      key: "state",
      header: "State",
      sortBy: ({ state }) => state,
      cell: ({ state, waits_for_xid, retry }) => (
        <Stack gap={2}>
          <Group gap={6} wrap="nowrap">
            <StateBadge state={state} compact />
            {waits_for_xid !== null && (
              <Text size="xs" c="dimmed">
                for {waits_for_xid}
              </Text>
            )}
          </Group>
          {retry && (
            <Text size="xs" c="dimmed" maw={360} lineClamp={3} title={retry.detail ?? retry.message}>
              Retry {retry.number} of {retry.times} at {formatTime(retry.at)}: {retry.detail ?? retry.message}
            </Text>
          )}
        </Stack>
      ),
    },
    {
      key: "age",
      header: "Age",
      definition: "Time since its first change arrived.",
      align: "right",
      sortBy: ({ age_seconds }) => age_seconds,
      cell: ({ age_seconds }) => <Quantity quantity={duration(age_seconds)} />,
    },
    {
      key: "lcrs",
      header: "Changes",
      align: "right",
      sortBy: ({ lcrs }) => lcrs,
      cell: ({ lcrs }) => <Quantity quantity={compactCount(lcrs, "LCR")} />,
    },
    {
      key: "size",
      header: "Size",
      align: "right",
      sortBy: (transaction) => transaction.bytes,
      cell: (transaction) => <Quantity quantity={bytes(transaction.bytes)} />,
    },
    {
      key: "spilled",
      header: "Spilled",
      definition: "How much of its size is on the engine's disk.",
      align: "right",
      sortBy: ({ spilled_bytes }) => spilled_bytes,
      cell: ({ spilled_bytes }) => (spilled_bytes > 0 ? <Quantity quantity={bytes(spilled_bytes)} /> : ""),
    },
    {
      key: "streamed",
      header: "Streaming",
      definition: "The source sends it before it commits.",
      cell: ({ streamed }) => (streamed ? "yes" : ""),
    },
    {
      key: "tables",
      header: "Tables",
      cell: ({ tables }) => (
        <Text size="xs" lineClamp={2} maw={260} title={tables.join(", ")}>
          {tables.join(", ")}
        </Text>
      ),
    },
    {
      key: "applier",
      header: "Applier",
      align: "right",
      sortBy: ({ applier }) => applier,
      cell: ({ applier }) => applier ?? "–",
    },
  ];
  return all.filter((column) => column !== false);
}
