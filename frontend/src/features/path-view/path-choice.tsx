import { Group, Text, UnstyledButton } from "@mantine/core";
import type { RunPath } from "@/api/types";
import { bottleneckInWords, verdictInWords } from "@/lib/advisor";
import { asText, rate } from "@/lib/format";
import { ToneIcon } from "@/ui/tone";
import classes from "./path-choice.module.css";

interface PathChoiceProps {
  paths: RunPath[];
  chosen: string | undefined;
  onChoose: (pathId: string) => void;
}

/** The paths of a run, those that need a look first. */
export function PathChoice({ paths, chosen, onChoose }: PathChoiceProps) {
  return (
    <ul className={classes.paths} aria-label="Paths">
      {paths.map((path) => (
        <li key={path.path_id}>
          <UnstyledButton
            className={classes.path}
            aria-pressed={path.path_id === chosen}
            onClick={() => onChoose(path.path_id)}
          >
            <Text size="sm" fw={600} truncate>
              {path.path_name}
            </Text>
            <Text size="xs" c="dimmed" truncate>
              {asText(rate(path.messages_per_second, "LCR"))}
            </Text>
            <Group gap={5} wrap="nowrap" mt={2}>
              <ToneIcon tone={verdictInWords(path.verdict).tone} size={13} />
              <Text size="xs" truncate>
                {bottleneckInWords(path)}
              </Text>
            </Group>
          </UnstyledButton>
        </li>
      ))}
    </ul>
  );
}
