import { Box, Group, Text, Tooltip } from "@mantine/core";
import { type ActivityShare, activities, activityShares } from "@/lib/activities";
import { asText, percent } from "@/lib/format";
import classes from "./time-bar.module.css";

function describe(shares: ActivityShare[]): string {
  return shares.map(({ activity, share }) => `${activity.label} ${asText(percent(share))}`).join(", ");
}

/** Where an agent's time went since the last sample, as one stacked bar. */
export function TimeBar({
  shares,
  label,
  thin = false,
}: {
  shares: Record<string, number | null> | null | undefined;
  label: string;
  /** One of many below a bar for all of them. */
  thin?: boolean;
}) {
  const known = activityShares(shares);
  const bar = {
    component: "span",
    className: classes.bar,
    role: "img",
    "data-thin": thin || undefined,
  } as const;
  if (!known) {
    return <Box {...bar} aria-label={`${label}: time not known yet`} data-unknown />;
  }
  return (
    <Tooltip
      label={
        <Box>
          {known.map(({ activity, share }) => (
            <Group key={activity.key} justify="space-between" gap="md" wrap="nowrap">
              <Group gap={6} wrap="nowrap">
                <span className={classes.swatch} style={{ background: activity.colour }} />
                <Text size="xs">{activity.label}</Text>
              </Group>
              <Text size="xs" className="numeric">
                {asText(percent(share))}
              </Text>
            </Group>
          ))}
        </Box>
      }
    >
      <Box {...bar} aria-label={`${label}: ${describe(known)}`}>
        {known.map(({ activity, share }) => (
          <span key={activity.key} style={{ flexGrow: share, background: activity.colour }} />
        ))}
      </Box>
    </Tooltip>
  );
}

export function TimeLegend() {
  return (
    <ul className={classes.legends} aria-label="Legend of the time bars">
      {activities.map((activity) => (
        <Tooltip key={activity.key} label={activity.definition}>
          <li className={classes.legend}>
            <span className={classes.swatch} style={{ background: activity.colour }} />
            {activity.label}
          </li>
        </Tooltip>
      ))}
    </ul>
  );
}
