import { NavLink, Stack } from "@mantine/core";
import {
  IconAffiliate,
  IconBell,
  IconCpu,
  IconDatabase,
  IconFlask2,
  IconHelpCircle,
  IconHistory,
  IconLayoutDashboard,
  IconListCheck,
  IconPlugConnected,
  IconSettings,
  IconStethoscope,
} from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link, useLocation } from "@tanstack/react-router";
import { labQuery } from "@/api/lab";
import { sessionQuery } from "@/api/session";
import { covers } from "@/lib/session-role";
import { HELP_TAB } from "@/ui/help-link";

const entries = [
  { to: "/", label: "Overview", icon: IconLayoutDashboard, under: ["/streams"] },
  { to: "/topology", label: "Topology", icon: IconAffiliate, under: [] },
  { to: "/advisor", label: "Advisor", icon: IconStethoscope, under: [] },
  { to: "/alerts", label: "Alerts", icon: IconBell, under: [] },
  { to: "/databases", label: "Databases", icon: IconDatabase, under: [] },
  { to: "/slots", label: "Slots", icon: IconPlugConnected, under: [] },
  { to: "/engines", label: "Engines", icon: IconCpu, under: [] },
  { to: "/operations", label: "Operations", icon: IconListCheck, under: [] },
  { to: "/audit", label: "Audit", icon: IconHistory, under: [] },
  { to: "/settings", label: "Settings", icon: IconSettings, under: [] },
] as const;
const lab = { to: "/lab", label: "Lab", icon: IconFlask2, under: [] } as const;

/** `onChosen` closes the drawer that holds it, where there is one. */
export function Navigation({ onChosen }: { onChosen?: () => void }) {
  const tall = onChosen !== undefined;
  // The lab only where there is a demo to try things on. It is known late, so that it comes last and shifts no other.
  const hasLab = useQuery(labQuery).data?.available === true;
  const readsAudit = covers(useQuery(sessionQuery).data?.user.role, "admin");
  return (
    <Stack component="nav" aria-label="Main" gap={2} p={8}>
      {entries
        .filter(({ to }) => to !== "/audit" || readsAudit)
        .map((entry) => (
          <Entry key={entry.to} entry={entry} onChosen={onChosen} />
        ))}
      <NavLink
        component="a"
        href="/help/"
        target={HELP_TAB}
        label="Help"
        onClick={onChosen}
        leftSection={<IconHelpCircle size={17} stroke={1.7} aria-hidden />}
        styles={styles(false, tall)}
      />
      {hasLab && <Entry entry={lab} onChosen={onChosen} />}
    </Stack>
  );
}

type EntryOf<To> = { to: To; label: string; icon: typeof IconFlask2; under: readonly string[] };
type AnyEntry = EntryOf<(typeof entries)[number]["to"] | "/lab">;

function Entry({
  entry: { to, label, icon: Icon, under },
  onChosen,
}: {
  entry: AnyEntry;
  onChosen?: () => void;
}) {
  const path = useLocation({ select: (location) => location.pathname });
  const inside = to === "/" ? under.some((prefix) => path.startsWith(prefix)) : path.startsWith(`${to}/`);
  const active = path === to || inside;
  return (
    <NavLink
      component={Link}
      to={to}
      label={label}
      active={active}
      onClick={onChosen}
      aria-current={active ? "page" : undefined}
      leftSection={<Icon size={17} stroke={1.7} aria-hidden />}
      styles={styles(active, onChosen !== undefined)}
    />
  );
}

const styles = (active: boolean, tall: boolean) => ({
  root: {
    borderRadius: 5,
    padding: tall ? "12px 12px" : "6px 10px",
    background: active ? "var(--accent-soft)" : undefined,
    color: active ? "var(--accent)" : "var(--text-primary)",
  },
  label: { fontSize: tall ? 15 : 13, fontWeight: active ? 600 : 450 },
});
