import { Box, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { openAlertsQuery } from "@/api/alerts";
import type { Alert, Stream } from "@/api/types";
import { withFullStop } from "@/lib/sentences";
import { AnchorLink } from "@/ui/anchor-link";
import { ToneIcon } from "@/ui/tone";
import classes from "./alert-card.module.css";
import { byUrgency } from "./open-alerts";
import { severityInWords } from "./words";

/** The stream's page says some alerts itself, with their cures: a database that is away is an error there. */
function isToldByThePage({ rule, evidence }: Alert, { error, source, destinations }: Stream): boolean {
  if (rule !== "database_unreachable") return rule === "component_aborted" || rule === "table_trouble";
  if (evidence.side === "source") return error?.side === "source" && evidence.database === source.name;
  const own = destinations.find(({ database }) => database.name === evidence.database);
  return own?.error?.side === "destination";
}

/** On a stream's page: what fires about it and is not told there anyway. */
export function StreamAlerts({ stream }: { stream: Stream }) {
  const alerts = (useQuery(openAlertsQuery).data ?? []).filter(
    (alert) => alert.stream_id === stream.id && alert.state === "firing" && !isToldByThePage(alert, stream),
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
                    {label}: {withFullStop(alert.title)}
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
