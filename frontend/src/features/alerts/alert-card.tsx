import { Box, Button, Group, Stack, Text } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useAcknowledge } from "@/api/alerts";
import { problemInWords } from "@/api/problem-in-words";
import type { Alert } from "@/api/types";
import { formatAgo, formatTime } from "@/lib/format";
import { AnchorLink } from "@/ui/anchor-link";
import { ProblemAlert } from "@/ui/problem-alert";
import { RestCallButton } from "@/ui/rest-call";
import { ToneBadge, ToneIcon } from "@/ui/tone";
import { AcknowledgeDialog } from "./acknowledge-dialog";
import classes from "./alert-card.module.css";
import { severityInWords } from "./words";

interface AlertCardProps {
  alert: Alert;
  mayAct: boolean;
  onSilence: (alert: Alert) => void;
}

/** One alert: what is the matter, what it means, what to do, who takes care. */
export function AlertCard({ alert, mayAct, onSilence }: AlertCardProps) {
  const takeBack = useAcknowledge();
  const [taking, setTaking] = useState(false);
  const navigate = useNavigate();
  const severity = severityInWords(alert.severity);
  const firing = alert.state === "firing";
  const acknowledged = alert.acknowledged_at !== null;
  const name = `${alert.title} of ${alert.subject.name}`;
  const path = `/api/v1/alerts/${alert.id}`;
  return (
    <Box component="article" className={classes.card} data-tone={severity.tone} aria-label={name}>
      <div className={classes.columns}>
        <Stack gap={6} miw={0}>
          <Group gap={8}>
            <ToneIcon tone={firing ? severity.tone : "quiet"} size={18} />
            <Text fw={650}>{alert.title}</Text>
            <ToneBadge compact state={severity} />
            {!firing && <ToneBadge compact state={pending} />}
            {alert.silenced && <ToneBadge compact state={silenced} />}
            {acknowledged && <ToneBadge compact state={taken(alert)} />}
          </Group>
          <Text size="sm" fw={500} style={{ overflowWrap: "anywhere" }}>
            {alert.message}
          </Text>
          <Text size="sm" c="dimmed">
            {alert.meaning}
          </Text>
          <Text size="sm">
            <Text span fw={600} size="sm">
              What to do:
            </Text>{" "}
            {alert.action}
          </Text>
          {alert.note && (
            <Text size="sm">
              <Text span fw={600} size="sm">
                {alert.acknowledged_by}:
              </Text>{" "}
              {alert.note}
            </Text>
          )}
          <Text size="xs" c="dimmed" title={formatTime(alert.fired_at ?? alert.pending_at)}>
            {firing ? "Fired" : "Seen"} {formatAgo(alert.fired_at ?? alert.pending_at)}
            {alert.run_id !== null && (
              <>
                {" · "}
                <AnchorLink
                  to="/advisor/runs/$runId"
                  params={{ runId: String(alert.run_id) }}
                  size="xs"
                  underline="always"
                >
                  What the advisor saw when it fired
                </AnchorLink>
              </>
            )}
          </Text>
        </Stack>
        <div className={classes.actions}>
          <Button variant="light" onClick={() => navigate({ href: alert.page })}>
            Open {alert.subject.type === "stream" ? "stream" : "page"}
          </Button>
          {mayAct && firing && !acknowledged && (
            <Button variant="default" onClick={() => setTaking(true)}>
              Acknowledge…
            </Button>
          )}
          {mayAct && firing && acknowledged && (
            <Button
              variant="default"
              loading={takeBack.isPending}
              onClick={() => takeBack.mutate({ id: alert.id, note: "", undo: true })}
            >
              Withdraw
            </Button>
          )}
          {mayAct && (
            <Button variant="default" onClick={() => onSilence(alert)}>
              Silence…
            </Button>
          )}
          <RestCallButton
            calls={[
              { method: "GET", path },
              { method: "POST", path: `${path}/acknowledge`, body: { note: "" } },
            ]}
          />
        </div>
      </div>
      {takeBack.isError && <ProblemAlert problem={problemInWords(takeBack.error)} />}
      <AcknowledgeDialog alert={alert} opened={taking} onClose={() => setTaking(false)} />
    </Box>
  );
}

const pending = {
  label: "Pending",
  tone: "quiet",
  definition:
    "The condition holds, but not for long enough yet. The alert fires unless the condition ends first.",
} as const;

const silenced = {
  label: "Silenced",
  tone: "quiet",
  definition: "A silence holds back its notices.",
} as const;

function taken(alert: Alert) {
  return {
    label: `Acknowledged by ${alert.acknowledged_by}`,
    tone: "busy",
    definition: `${formatTime(alert.acknowledged_at)}. The alert stays open until its cause is gone.`,
  } as const;
}
