import { Button, Group, Stack, Text, Title } from "@mantine/core";
import { IconArrowBackUp, IconPlayerPlay } from "@tabler/icons-react";
import { useId, useState } from "react";
import type { LabCause } from "@/api/types";
import { CopyBlock } from "@/ui/copy-block";
import { ToneBadge } from "@/ui/tone";
import classes from "./cause-card.module.css";
import { DelaySlider } from "./delay-slider";
import { stateOfAction } from "./states";
import { TimeLeft } from "./time-left";

interface CauseCardProps {
  cause: LabCause;
  /** The destination's name. */
  at: string;
  disabled: boolean;
  /** `delayMs` of the slow network; also while it is on, to change it. */
  onStart: (delayMs?: number) => void;
  onStop: () => void;
}

/** One way to make the stream slow: what it does, its SQL, and the way back. */
export function CauseCard({ cause, at, disabled, onStart, onStop }: CauseCardProps) {
  const { title, effect, state, until, failure, refused, delay } = cause;
  const [chosenMs, setChosenMs] = useState<number | null>(null);
  const delayMs = chosenMs ?? delay?.ms;
  const id = useId();
  const begun = state === "starting" || state === "on" || state === "gone";
  return (
    <Stack
      component="article"
      gap={8}
      className={classes.card}
      data-on={begun || undefined}
      aria-labelledby={id}
    >
      <Group justify="space-between" gap={8}>
        <Title order={3} id={id}>
          {title}
        </Title>
        <ToneBadge state={stateOfAction[state]} compact />
      </Group>
      <Text size="sm">{effect}</Text>
      {delay && delayMs !== undefined && (
        <DelaySlider
          ms={delayMs}
          delay={delay}
          disabled={disabled || state === "ending"}
          onMs={(ms) => {
            setChosenMs(ms);
            if (begun) onStart(ms);
          }}
        />
      )}
      {begun || state === "ending" ? (
        <Group justify="space-between">
          <Button
            variant="default"
            disabled={disabled || !begun}
            leftSection={<IconArrowBackUp size={15} aria-hidden />}
            onClick={onStop}
          >
            Back to normal
          </Button>
          {until && begun && <TimeLeft until={until} />}
        </Group>
      ) : (
        <Button
          style={{ alignSelf: "flex-start" }}
          disabled={disabled || refused !== null}
          leftSection={<IconPlayerPlay size={15} aria-hidden />}
          onClick={() => onStart(delayMs)}
        >
          Make it slow
        </Button>
      )}
      {state === "off" && refused && (
        <Text size="sm" c="dimmed">
          {refused}
        </Text>
      )}
      {failure && (
        <Text size="sm" c="var(--tone-bad)">
          {failure} The lab tries again.
        </Text>
      )}
      <details>
        <summary className={classes.summary}>The SQL</summary>
        <Stack gap={8} mt={8}>
          <CopyBlock text={cause.sql} label={`Runs at ${at}`} about={title} maxHeight={180} />
          <CopyBlock text={cause.end_sql} label="Undoes it" about={title} maxHeight={120} />
        </Stack>
      </details>
    </Stack>
  );
}
