import { Button, Group, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { Instantiation, StreamDestination } from "@/api/types";
import { asText, bytes, counted, formatTime } from "@/lib/format";
import { stateInWords } from "@/lib/states";
import { Panel } from "@/ui/panel";
import { CopyTables } from "./copy-tables";
import { InstantiationProgress } from "./instantiation-progress";

interface CopyBoardProps {
  destinations: readonly StreamDestination[];
  finished: boolean;
}

/** The copies that run or are interrupted, or those that have finished: the latest first. */
export function CopyBoard({ destinations, finished }: CopyBoardProps) {
  const shown = destinations
    .filter(
      ({ instantiation }) => instantiation !== null && (instantiation.stage === "finished") === finished,
    )
    .sort((a, b) => latest(b.instantiation).localeCompare(latest(a.instantiation)));
  return shown.map(({ id, database, instantiation, phase, state }) => {
    const what = finished ? "Copied tables" : "Initial copy";
    const title = destinations.length > 1 ? `${what} of ${database.name}` : what;
    if (instantiation === null) return null;
    return finished ? (
      <FinishedCopy key={id} title={title} instantiation={instantiation} />
    ) : (
      <Panel key={id} flush title={title}>
        <InstantiationProgress
          instantiation={instantiation}
          interrupted={phase === "INSTANTIATING" ? null : stateInWords(state).label}
        />
      </Panel>
    );
  });
}

const latest = (copy: Instantiation | null) => copy?.finished_at ?? copy?.started_at ?? "";

/** One line, with the tables behind a button. Tables that were copied again count with their last copy. */
function FinishedCopy({ title, instantiation }: { title: string; instantiation: Instantiation }) {
  const [opened, { toggle }] = useDisclosure(false);
  return (
    <Panel
      flush
      title={title}
      aside={
        <Group gap="sm">
          <Text size="sm" c="dimmed" className="numeric">
            Last copy finished {formatTime(instantiation.finished_at)} ·{" "}
            {counted(instantiation.rows_copied, "row")} in all · {asText(bytes(instantiation.bytes_copied))}
          </Text>
          <Button variant="default" aria-expanded={opened} onClick={toggle}>
            {opened ? "Hide tables" : `Show ${counted(instantiation.tables.length, "table")}`}
          </Button>
        </Group>
      }
    >
      {opened && <CopyTables tables={instantiation.tables} />}
    </Panel>
  );
}
