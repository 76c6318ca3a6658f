import { Badge, Box, Tooltip } from "@mantine/core";
import { IconAlertTriangle, IconBroadcast, IconClockPause, IconLoader2 } from "@tabler/icons-react";
import { lastSampleAt, useLiveState } from "@/api/live";
import { formatAgo } from "@/lib/format";
import { STALE_AFTER_MS } from "./stale";
import { useNow } from "./use-now";

const faces = {
  live: {
    label: "Live",
    tone: "good",
    icon: IconBroadcast,
    text: "Numbers arrive as the engines report them.",
  },
  connecting: {
    label: "Connecting",
    tone: "quiet",
    icon: IconLoader2,
    text: "Opening the stream of live numbers.",
  },
  silent: {
    label: "No samples",
    tone: "quiet",
    icon: IconClockPause,
    text: "Connected, but no numbers have come for some time: no stream runs, no engine answers, or the control plane's collector does not run.",
  },
  lost: { label: "Stale", tone: "warning", icon: IconAlertTriangle, text: "" },
} as const;

/** Says whether what the page shows is live. A screen reader hears of changes. */
export function LiveMarker() {
  const { state, lostSince } = useLiveState();
  const now = useNow(1000);
  const isSilent = state === "live" && now - (lastSampleAt() ?? now) > STALE_AFTER_MS;
  const face = faces[isSilent ? "silent" : state];
  const Icon = face.icon;
  const text =
    state === "lost"
      ? `The connection to the control plane was lost ${lostSince ? formatAgo(new Date(lostSince).toISOString()) : ""}. The numbers are the last ones received; the console reconnects by itself.`
      : face.text;
  return (
    <Tooltip label={text}>
      <Box role="status" aria-live="polite">
        <Badge
          leftSection={<Icon size={13} aria-hidden />}
          styles={{
            root: {
              background: `var(--tone-${face.tone}-soft)`,
              color: `var(--tone-${face.tone})`,
              border: "1px solid transparent",
            },
          }}
        >
          {face.label}
        </Badge>
      </Box>
    </Tooltip>
  );
}
