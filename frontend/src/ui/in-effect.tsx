import { Stack, Text } from "@mantine/core";
import { formatTime } from "@/lib/format";

interface Effect {
  under_way: boolean;
  from: string | null;
  since: string | null;
}

interface InEffectProps {
  destinations: readonly {
    id: string;
    database: { name: string };
    desired_status: string;
    in_effect: Effect | null;
  }[];
}

/** From which position on a stream's last change is in effect, at each destination whose engine tells it. */
export function InEffect({ destinations }: InEffectProps) {
  const present = destinations.filter(({ desired_status }) => desired_status !== "DROPPED");
  return (
    <Stack gap={2} aria-live="polite" role="status" aria-label="In effect">
      {present.map(
        ({ id, database, in_effect }) =>
          in_effect && (
            <Text key={id} size="sm" c="dimmed">
              {present.length > 1 && `${database.name}: `}
              {inWords(in_effect)}
            </Text>
          ),
      )}
    </Stack>
  );
}

function inWords({ under_way, from, since }: Effect): string {
  if (under_way) return "The last change is not in effect yet";
  if (from === null) return "The last change takes effect with the next start";
  return `In effect from ${from}, since ${formatTime(since)}`;
}
