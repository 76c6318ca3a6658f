import { Box, Button, Group, Stack, Text } from "@mantine/core";
import type { ServerSlot } from "@/api/types";
import { asText, bytes, compactCount, duration, type Quantity as QuantityValue } from "@/lib/format";
import { growth } from "@/lib/lag";
import { AnchorLink } from "@/ui/anchor-link";
import { type Column, DataTable } from "@/ui/data-table";
import { useNarrow } from "@/ui/narrow";
import { Quantity } from "@/ui/quantity";
import { ToneBadge } from "@/ui/tone";
import { forecast, oldestXmin, orphan, soonestLoss, unknownStream, walInWords } from "./slot-words";

const definitions = {
  Room: "WAL that may still be written before the slot is lost (max_slot_wal_keep_size).",
  "xmin age":
    "Transactions since the oldest one whose dead rows vacuum must keep for this slot, in tables or in system catalogues.",
};

interface SlotsTableProps {
  label: string;
  slots: ServerSlot[];
  mayAct: boolean;
  onDrop: (slot: ServerSlot) => void;
}

export function SlotsTable({ label, slots, mayAct, onDrop }: SlotsTableProps) {
  if (useNarrow()) return <SlotCards label={label} slots={slots} mayAct={mayAct} onDrop={onDrop} />;
  return (
    <DataTable
      label={label}
      columns={columns(mayAct, onDrop)}
      rows={slots}
      rowKey={(slot) => slot.name}
      initialSort={{ key: "kept", descending: true }}
    />
  );
}

function columns(mayAct: boolean, onDrop: (slot: ServerSlot) => void): Column<ServerSlot>[] {
  return [
    {
      key: "name",
      header: "Slot",
      sortBy: (slot) => slot.name,
      cell: (slot) => <Name slot={slot} />,
    },
    { key: "owner", header: "Owner", sortBy: ownerName, cell: (slot) => <Owner slot={slot} /> },
    {
      key: "reader",
      header: "Reader",
      definition: "The server process that sends changes to the slot's present reader.",
      cell: readerInWords,
    },
    {
      key: "kept",
      header: "WAL kept",
      definition: "WAL that the server keeps on its disk for the slot, for how long, and how fast it grows.",
      sortBy: (slot) => slot.retained_bytes,
      cell: (slot) => <Kept slot={slot} />,
    },
    { key: "wal", header: "State", cell: (slot) => <ToneBadge compact state={walInWords(slot)} /> },
    {
      key: "room",
      header: "Room",
      definition: definitions.Room,
      align: "right",
      sortBy: (slot) => slot.safe_bytes,
      cell: (slot) => <Quantity quantity={bytes(slot.safe_bytes)} />,
    },
    {
      key: "xmin",
      header: "xmin age",
      definition: definitions["xmin age"],
      align: "right",
      sortBy: oldestXmin,
      cell: (slot) => <Quantity quantity={compactCount(oldestXmin(slot))} />,
    },
    {
      key: "forecast",
      header: "Forecast",
      sortBy: soonestLoss,
      cell: (slot) => (
        <Text size="xs" miw={150} maw={280} py={4}>
          {forecast(slot)}
        </Text>
      ),
    },
    {
      key: "actions",
      header: "Actions",
      cell: (slot) => <DropButton slot={slot} mayAct={mayAct} onDrop={onDrop} />,
    },
  ];
}

/** A card for each slot, those that keep most WAL first: what a phone has room for. */
function SlotCards({ label, slots, mayAct, onDrop }: SlotsTableProps) {
  const sorted = [...slots].sort((a, b) => b.retained_bytes - a.retained_bytes);
  return (
    <Stack component="ul" gap={0} m={0} p={0} aria-label={label} style={{ listStyle: "none" }}>
      {sorted.map((slot) => (
        <Stack
          component="li"
          key={slot.name}
          aria-label={slot.name}
          gap={6}
          p={12}
          style={{ borderTop: "1px solid var(--border-subtle)" }}
        >
          <Name slot={slot} />
          <Group gap={10}>
            <Owner slot={slot} />
            <ToneBadge compact state={walInWords(slot)} />
            <Text size="xs" c="dimmed">
              read by {readerInWords(slot)}
            </Text>
          </Group>
          <Kept slot={slot} />
          <Group gap={14}>
            <Figure name="Room" quantity={bytes(slot.safe_bytes)} />
            <Figure name="xmin age" quantity={compactCount(oldestXmin(slot))} />
          </Group>
          <Text size="xs">{forecast(slot)}</Text>
          <DropButton slot={slot} mayAct={mayAct} onDrop={onDrop} />
        </Stack>
      ))}
    </Stack>
  );
}

function Figure({ name, quantity }: { name: keyof typeof definitions; quantity: QuantityValue }) {
  return (
    <Text size="xs" title={definitions[name]}>
      <Text span size="xs" c="dimmed">
        {name}
      </Text>{" "}
      <Quantity quantity={quantity} />
    </Text>
  );
}

const readerInWords = (slot: ServerSlot) =>
  slot.active ? (slot.active_pid === null ? "somebody" : `pid ${slot.active_pid}`) : "nobody";

function Name({ slot }: { slot: ServerSlot }) {
  return (
    <Stack gap={2} py={4} align="flex-start">
      <Text size="xs" ff="monospace" style={{ overflowWrap: "anywhere" }}>
        {slot.name}
      </Text>
      <Text size="xs" c="dimmed">
        {[
          slot.plugin ?? slot.slot_type,
          slot.database && `database ${slot.database}`,
          slot.temporary && "temporary",
        ]
          .filter(Boolean)
          .join(", ")}
      </Text>
    </Stack>
  );
}

function DropButton({
  slot,
  mayAct,
  onDrop,
}: { slot: ServerSlot } & Pick<SlotsTableProps, "mayAct" | "onDrop">) {
  if (slot.owner !== "orphan") return null;
  return (
    <Button
      variant="default"
      disabled={!mayAct || slot.active}
      aria-label={`Drop ${slot.name}`}
      onClick={() => onDrop(slot)}
    >
      Drop
    </Button>
  );
}

const ownerName = (slot: ServerSlot) => slot.stream?.name ?? slot.engine?.name ?? slot.owner;

function Owner({ slot }: { slot: ServerSlot }) {
  if (slot.stream)
    return (
      <AnchorLink to="/streams/$streamId" params={{ streamId: slot.stream.id }} size="sm">
        {slot.stream.name}
      </AnchorLink>
    );
  if (slot.engine) return <ToneBadge compact state={unknownStream(slot.engine.name)} />;
  if (slot.owner === "orphan") return <ToneBadge compact state={orphan} />;
  return (
    <Text size="sm" c="dimmed">
      not Thalweg's
    </Text>
  );
}

function Kept({ slot }: { slot: ServerSlot }) {
  const details = [
    slot.retained_age_seconds !== null && slot.retained_bytes > 0
      ? `for ${asText(duration(slot.retained_age_seconds))}`
      : null,
    slot.growth_bytes_per_second && slot.wal_status !== "lost"
      ? asText(growth(slot.growth_bytes_per_second))
      : null,
  ].filter(Boolean);
  return (
    <Box py={4} style={{ whiteSpace: "nowrap" }}>
      <Quantity quantity={bytes(slot.retained_bytes)} />
      <Text size="xs" c="dimmed">
        {details.join(", ")}
      </Text>
    </Box>
  );
}
