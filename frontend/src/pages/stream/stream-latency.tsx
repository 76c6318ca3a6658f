import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { IconFlag, IconHeartbeat } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { problemInWords } from "@/api/problem-in-words";
import { markersQuery, usePlaceMarker } from "@/api/tracking";
import type { Marker, Stream } from "@/api/types";
import { MarkerTable, markerKey } from "@/features/latency/marker-table";
import { MarkerWay } from "@/features/latency/marker-way";
import { lastHeartbeat } from "@/features/latency/way";
import { formatAgo, latencyMs } from "@/lib/format";
import { Empty } from "@/ui/faces";
import { Panel } from "@/ui/panel";
import { ProblemAlert } from "@/ui/problem-alert";
import { Quantity } from "@/ui/quantity";
import { QueryFaces } from "@/ui/query-faces";

/** The way of markers through the path: those that somebody places, and heartbeats that tell true latency of an idle stream. */
export function StreamLatency({ stream, mayAct }: { stream: Stream; mayAct: boolean }) {
  const query = useQuery(markersQuery(stream.id));
  const [chosen, setChosen] = useState<string | null>(null);
  return (
    <Stack gap="sm">
      <PlaceMarker stream={stream} mayAct={mayAct} onPlaced={(marker) => setChosen(markerKey(marker))} />
      <QueryFaces query={query} inWords={problemInWords} loadingLabel="Loading markers">
        {(markers) => {
          const shown =
            markers.find((marker) => markerKey(marker) === chosen) ?? lastHeartbeat(markers) ?? markers[0];
          if (!shown)
            return (
              <Panel>
                <Empty icon={<IconHeartbeat size={36} stroke={1.5} />} title="No markers yet">
                  Heartbeats arrive while the stream runs. Place a marker to follow it along the path.
                </Empty>
              </Panel>
            );
          return (
            <>
              <Panel
                title={titleOf(shown)}
                aside={<Quantity size="lg" quantity={latencyMs(shown.latency_ms)} />}
              >
                <MarkerWay marker={shown} destinations={stream.destinations} />
              </Panel>
              <Panel flush title="Markers">
                <MarkerTable
                  markers={markers}
                  chosen={shown}
                  onChoose={(marker) => setChosen(markerKey(marker))}
                />
              </Panel>
            </>
          );
        }}
      </QueryFaces>
    </Stack>
  );
}

function titleOf(marker: Marker): string {
  const name = marker.kind === "HEARTBEAT" ? "Heartbeat" : `Marker ${marker.label}`.trim();
  return `${name}, ${formatAgo(marker.placed_at)}`;
}

interface PlaceMarkerProps {
  stream: Stream;
  mayAct: boolean;
  onPlaced: (marker: Marker) => void;
}

function PlaceMarker({ stream, mayAct, onPlaced }: PlaceMarkerProps) {
  const place = usePlaceMarker(stream.id);
  const [label, setLabel] = useState("");
  return (
    <Stack gap="xs">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          place.mutate(label.trim(), { onSuccess: onPlaced });
        }}
      >
        <Group justify="space-between">
          <Text size="sm" c="dimmed">
            A marker is a transaction without changes that takes the same path as every commit.
          </Text>
          <Group gap="xs">
            <TextInput
              aria-label="Label of the marker"
              placeholder="Label, optional"
              maxLength={100}
              value={label}
              onChange={(event) => setLabel(event.currentTarget.value)}
            />
            <Button
              type="submit"
              disabled={!mayAct}
              loading={place.isPending}
              leftSection={<IconFlag size={14} aria-hidden />}
            >
              Place a marker
            </Button>
          </Group>
        </Group>
      </form>
      {place.isError && <ProblemAlert problem={problemInWords(place.error)} />}
    </Stack>
  );
}
