import { Box, Checkbox, Stack, Text, Title, VisuallyHidden } from "@mantine/core";
import type { Check } from "@/api/types";
import { sentenceCase, type Tone } from "@/lib/states";
import { CopyBlock } from "@/ui/copy-block";
import { ToneIcon } from "@/ui/tone";
import classes from "./check-list.module.css";
import { bySide, summary } from "./checks";

const faces: Record<Check["status"], { tone: Tone; word: string }> = {
  ok: { tone: "good", word: "Passed" },
  warning: { tone: "warning", word: "Warning" },
  consent: { tone: "warning", word: "Needs consent" },
  failed: { tone: "bad", word: "Failed" },
};

/** The consents that are given, and what a tick changes. */
export interface Consents {
  accepted: readonly string[];
  onChange: (accepted: string[]) => void;
}

interface CheckListProps {
  checks: Check[];
  databases?: Record<string, string>;
  /** Left out where nothing is about to be made. */
  consents?: Consents;
}

/** Checks of databases, what failed first, each with its cure; what must be accepted has a box. */
export function CheckList({ checks, databases = {}, consents }: CheckListProps) {
  return (
    <Stack gap="md">
      <Text size="sm" role="status" fw={550}>
        {summary(checks)}
      </Text>
      {bySide(checks).map(({ side, databaseId, group }) => (
        <Box
          key={`${side} ${databaseId}`}
          component="section"
          aria-label={["Checks at the", side, databaseId && databases[databaseId]].filter(Boolean).join(" ")}
        >
          <Title order={3} mb={4} c="dimmed">
            {sentenceCase(side)} {databaseId && databases[databaseId]}
          </Title>
          <ul className={classes.list}>
            {group.map((check) => (
              <CheckRow
                key={`${check.id} ${check.title} ${check.detail}`}
                check={check}
                consents={consents}
              />
            ))}
          </ul>
        </Box>
      ))}
    </Stack>
  );
}

function CheckRow({ check, consents }: { check: Check; consents?: Consents }) {
  const { tone, word } = faces[check.status];
  const passed = check.status === "ok";
  return (
    <li className={classes.check} data-passed={passed || undefined}>
      <Box pt={2}>
        <ToneIcon tone={tone} />
        <VisuallyHidden>{word}: </VisuallyHidden>
      </Box>
      <Box className={classes.words}>
        <Text size="sm" fw={600}>
          {check.title}
          {!passed && (
            <Text span size="xs" fw={600} ml={8} style={{ color: `var(--tone-${tone})` }} aria-hidden>
              {word}
            </Text>
          )}
        </Text>
        <Text size="sm" c="dimmed">
          {check.detail}
        </Text>
        {check.items.length > 0 && (
          <ul className={classes.items}>
            {check.items.map((item) => (
              <li key={item}>{item}</li>
            ))}
          </ul>
        )}
        {check.cure && (
          <Text size="sm" mt={2} c={passed ? "dimmed" : undefined}>
            {!passed && <strong>Cure: </strong>}
            {check.cure}
          </Text>
        )}
        {!passed && check.sql && (
          <Box mt={6}>
            <CopyBlock
              text={check.sql}
              label={`SQL to run at the ${check.side} ${check.sql_at}`}
              about={check.title}
              copyLabel="Copy SQL"
            />
          </Box>
        )}
        {consents && check.consent && <Consent check={check} consent={check.consent} {...consents} />}
      </Box>
    </li>
  );
}

interface ConsentProps extends Consents {
  check: Check;
  consent: string;
}

function Consent({ check, consent, accepted, onChange }: ConsentProps) {
  return (
    <Checkbox
      mt={8}
      size="sm"
      label="I accept this"
      aria-label={`Accept: ${check.title}`}
      checked={accepted.includes(consent)}
      onChange={(event) =>
        onChange(
          event.currentTarget.checked
            ? [...accepted, consent]
            : accepted.filter((given) => given !== consent),
        )
      }
    />
  );
}
