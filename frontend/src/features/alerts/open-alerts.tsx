import { Stack } from "@mantine/core";
import { IconBellCheck } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { openAlertsQuery } from "@/api/alerts";
import { problemInWords } from "@/api/problem-in-words";
import type { Alert } from "@/api/types";
import { Empty } from "@/ui/faces";
import { Panel } from "@/ui/panel";
import { QueryFaces } from "@/ui/query-faces";
import { AlertCard } from "./alert-card";
import { SilenceDialog } from "./silence-dialog";

/** Firing first, the critical ones before the others; the rest in the order that they came. */
export function byUrgency(alerts: Alert[]): Alert[] {
  const rank = (alert: Alert) =>
    (alert.state === "firing" ? 0 : 4) +
    (alert.acknowledged_at === null ? 0 : 2) +
    (alert.severity === "critical" ? 0 : 1);
  return [...alerts].sort((a, b) => rank(a) - rank(b) || Number(b.id) - Number(a.id));
}

export function OpenAlerts({ mayAct }: { mayAct: boolean }) {
  const query = useQuery(openAlertsQuery);
  const [silencing, setSilencing] = useState<Alert | null>(null);
  return (
    <QueryFaces query={query} inWords={problemInWords} loadingLabel="Loading alerts">
      {(alerts) => (
        <>
          {alerts.length === 0 ? (
            <Panel>
              <Empty icon={<IconBellCheck size={40} stroke={1.5} />} title="No alert is firing">
                The alert rules are evaluated every few seconds. Past alerts are in the history.
              </Empty>
            </Panel>
          ) : (
            <Stack gap="xs">
              {byUrgency(alerts).map((alert) => (
                <AlertCard key={alert.id} alert={alert} mayAct={mayAct} onSilence={setSilencing} />
              ))}
            </Stack>
          )}
          <SilenceDialog
            opened={silencing !== null}
            rule={silencing?.rule ?? null}
            streamId={silencing?.stream_id ?? null}
            onClose={() => setSilencing(null)}
          />
        </>
      )}
    </QueryFaces>
  );
}
