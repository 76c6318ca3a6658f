import { ActionIcon, Indicator } from "@mantine/core";
import { IconBell } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { alertCountsQuery } from "@/api/alerts";

/** In the header: how many alerts wait for somebody. */
export function AlertBell() {
  const counts = useQuery(alertCountsQuery).data;
  const waiting = counts?.unacknowledged ?? 0;
  const label =
    counts === undefined
      ? "Alerts: unknown"
      : waiting === 0
        ? "Alerts: none needs attention"
        : `Alerts: ${waiting} ${waiting === 1 ? "needs" : "need"} attention`;
  return (
    <Indicator
      disabled={waiting === 0}
      label={waiting > 99 ? "99+" : waiting}
      size={15}
      offset={5}
      color={counts?.critical ? "var(--tone-bad)" : "var(--tone-warning)"}
      styles={{ indicator: { fontSize: 10, fontWeight: 700, color: "var(--surface-raised)" } }}
    >
      <ActionIcon component={Link} to="/alerts" variant="subtle" color="gray" size="md" aria-label={label}>
        <IconBell size={17} stroke={1.7} aria-hidden />
      </ActionIcon>
    </Indicator>
  );
}
