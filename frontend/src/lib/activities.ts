// Activities of an agent, which share its time. The order is the order in the stacked bar: work, waits, held back,
// idle.

export interface Activity {
  key: string;
  label: string;
  definition: string;
  colour: string;
}

export const activities: Activity[] = [
  { key: "busy", label: "Busy", definition: "Working in the engine itself.", colour: "var(--activity-busy)" },
  {
    key: "execute",
    label: "Execute",
    definition: "Waiting while the destination executes statements.",
    colour: "var(--activity-execute)",
  },
  {
    key: "commit",
    label: "Commit",
    definition: "Waiting for a commit at the destination to become durable.",
    colour: "var(--activity-commit)",
  },
  {
    key: "network",
    label: "Network",
    definition: "Waiting for the network or for the source to send.",
    colour: "var(--activity-network)",
  },
  {
    key: "dependency",
    label: "Dependency",
    definition: "Waiting for a transaction that touches the same rows.",
    colour: "var(--activity-dependency)",
  },
  {
    key: "commit_order",
    label: "Commit order",
    definition: "Executed, waiting for its turn to commit.",
    colour: "var(--activity-commit-order)",
  },
  {
    key: "lock",
    label: "Lock",
    definition: "Waiting for a lock that another session holds at the destination.",
    colour: "var(--activity-lock)",
  },
  {
    key: "disk",
    label: "Disk",
    definition: "Waiting for the engine's own disk (spill).",
    colour: "var(--activity-disk)",
  },
  {
    key: "flow_control",
    label: "Flow control",
    definition: "Held back because the component downstream is slower.",
    colour: "var(--activity-flow-control)",
  },
  {
    key: "idle",
    label: "Idle",
    definition: "Nothing to do: waiting for the component upstream.",
    colour: "var(--activity-idle)",
  },
];

/** Activities in the advisor's bars only: one that it alone tells apart, and one for all waits that it leaves out. */
const advisorActivities: Activity[] = [
  {
    key: "source",
    label: "Source",
    definition: "Waiting while the source decodes and sends what it has written.",
    colour: "var(--activity-network)",
  },
  {
    key: "other",
    label: "Other waits",
    definition: "All waits except the three longest.",
    colour: "var(--activity-other)",
  },
];

export const inBarOrder = [...activities.slice(0, -2), ...advisorActivities, ...activities.slice(-2)];

export interface ActivityShare {
  activity: Activity;
  /** 0..1 of the sampled interval. */
  share: number;
}

/** The shares in display order, zero ones left out; null while they are unknown (first sample). */
export function activityShares(
  shares: Record<string, number | null> | null | undefined,
): ActivityShare[] | null {
  if (!shares) return null;
  const known = inBarOrder.flatMap((activity) => {
    const share = shares[activity.key];
    return share === null || share === undefined ? [] : [{ activity, share: Math.max(0, share) }];
  });
  if (known.length === 0) return null;
  const total = known.reduce((sum, { share }) => sum + share, 0);
  if (total <= 0) return null;
  // Clocks of counters and samples differ a little; the bar shows proportions, so they are normalised.
  return known
    .map(({ activity, share }) => ({ activity, share: share / total }))
    .filter(({ share }) => share > 0);
}
