import { Box, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { openAlertsQuery } from "@/api/alerts";
import { AnchorLink } from "@/ui/anchor-link";
import { ToneIcon } from "@/ui/tone";
import classes from "./alert-card.module.css";
import { byUrgency } from "./open-alerts";
import { severityInWords } from "./words";

/** On a stream's page: what fires about it. What the page says itself, with its cure, is left out. */
const toldByThePage = ["component_aborted", "table_trouble"];

export function StreamAlerts({ streamId }: { streamId: string }) {
  const alerts = (useQuery(openAlertsQuery).data ?? []).filter(
    (alert) =>
      alert.stream_id === streamId && alert.state === "firing" && !toldByThePage.includes(alert.rule),
  );
  if (alerts.length === 0) return null;
  return (
    <Stack component="section" gap={6} aria-label="Alerts of this stream">
      {byUrgency(alerts).map((alert) => {
        const { tone, label } = severityInWords(alert.severity);
        return (
          <Box key={alert.id} className={classes.card} data-tone={tone} py={8}>
            <div className={classes.columns}>
              <Group gap={8} wrap="nowrap" align="flex-start" miw={0}>
                <ToneIcon tone={tone} />
                <Text size="sm" title={alert.action} style={{ overflowWrap: "anywhere" }}>
                  <Text span size="sm" fw={600}>
                    {label}: {alert.title}.
                  </Text>{" "}
                  {alert.message}
                </Text>
              </Group>
              <AnchorLink to="/alerts" size="sm" style={{ flex: "none" }}>
                {alert.acknowledged_by ? `Acknowledged by ${alert.acknowledged_by}` : "What to do"}
              </AnchorLink>
            </div>
          </Box>
        );
      })}
    </Stack>
  );
}
