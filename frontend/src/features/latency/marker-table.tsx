import { Text, UnstyledButton } from "@mantine/core";
import type { Marker } from "@/api/types";
import { formatTime, latencyMs } from "@/lib/format";
import { type Column, DataTable } from "@/ui/data-table";
import { Quantity } from "@/ui/quantity";
import { StateBadge } from "@/ui/tone";

interface MarkerTableProps {
  markers: Marker[];
  chosen: Marker | null;
  onChoose: (marker: Marker) => void;
}

export function markerKey({ id, placed_at }: Marker): string {
  return id ?? placed_at;
}

export function MarkerTable({ markers, chosen, onChoose }: MarkerTableProps) {
  const columns: Column<Marker>[] = [
    {
      key: "marker",
      header: "Marker",
      cell: (marker) => (
        <UnstyledButton
          mih={24}
          aria-pressed={chosen !== null && markerKey(chosen) === markerKey(marker)}
          onClick={() => onChoose(marker)}
        >
          <Text
            size="sm"
            c="var(--accent)"
            fw={chosen && markerKey(chosen) === markerKey(marker) ? 600 : 450}
          >
            {marker.kind === "HEARTBEAT" ? "Heartbeat" : marker.label || "Tracked"}
          </Text>
        </UnstyledButton>
      ),
    },
    {
      key: "placed",
      header: "Placed",
      sortBy: (marker) => marker.placed_at,
      cell: (marker) => formatTime(marker.placed_at),
    },
    { key: "state", header: "State", cell: (marker) => <StateBadge state={marker.state} compact /> },
    {
      key: "position",
      header: "Position",
      cell: (marker) => (
        <Text size="xs" ff="monospace">
          {marker.commit_lsn ?? "–"}
        </Text>
      ),
    },
    {
      key: "latency",
      header: "Latency",
      definition: "From the commit at the source to the last commit at a destination.",
      align: "right",
      sortBy: (marker) => marker.latency_ms,
      cell: (marker) => <Quantity quantity={latencyMs(marker.latency_ms)} />,
    },
  ];
  return <DataTable label="Markers" columns={columns} rows={markers} rowKey={markerKey} maxHeight={360} />;
}
