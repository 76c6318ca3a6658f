import { Badge, Code, Group, Modal, ScrollArea, Stack, Table, Text, VisuallyHidden } from "@mantine/core";
import { IconKey } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { problemInWords } from "@/api/problem-in-words";
import { wholeChangeQuery } from "@/api/searches";
import type { Change, ChangedColumn, ChangedValue } from "@/api/types";
import { formatTime } from "@/lib/format";
import { CopyBlock } from "@/ui/copy-block";
import { useNarrow } from "@/ui/narrow";
import { QueryFaces } from "@/ui/query-faces";
import { RestCall } from "@/ui/rest-call";
import classes from "./change-details.module.css";
import { differs } from "./values";

const BEFORE: Record<Change["before_is"], string> = {
  whole: "The log has the whole old row.",
  identity: "The log has only the old row's key; for more, set the table's REPLICA IDENTITY to FULL.",
  followed: "The old row comes from the change of the same row that was found before it.",
  unknown: "The log does not have the old row.",
};

interface ChangeDetailsProps {
  databaseId: string;
  searchId: string;
  change: Change;
  onClose: () => void;
}

/** A change with all of its columns, and the SQL that undoes it. */
export function ChangeDetails({ databaseId, searchId, change, onClose }: ChangeDetailsProps) {
  const whole = useQuery(wholeChangeQuery(databaseId, searchId, change.number));
  const narrow = useNarrow();
  const name = `${change.operation} ${change.schema}.${change.table}`;
  return (
    <Modal
      opened
      onClose={onClose}
      title={`Change ${change.number}: ${name}`}
      size="72rem"
      fullScreen={narrow}
    >
      <Stack gap="md">
        <Group gap="md">
          <Text size="sm">Committed {formatTime(change.commit_time)}</Text>
          <Text size="sm">
            Transaction <Code>{change.xid}</Code>, commit LSN <Code>{change.commit_lsn}</Code>
          </Text>
          {change.origin !== null && <Badge variant="default">from {change.origin}</Badge>}
        </Group>
        {change.operation !== "TRUNCATE" && change.operation !== "INSERT" && (
          <Text size="sm" c="dimmed">
            {BEFORE[change.before_is]}
          </Text>
        )}
        <QueryFaces query={whole} inWords={problemInWords} loadingLabel="Reading the change">
          {(read) => <Opened change={read ?? change} name={name} />}
        </QueryFaces>
        <RestCall
          call={{
            method: "GET",
            path: `/api/v1/sources/${databaseId}/searches/${searchId}?after=${change.number - 1}&limit=1&whole=true`,
          }}
        />
      </Stack>
    </Modal>
  );
}

function Opened({ change, name }: { change: Change; name: string }) {
  return (
    <Stack gap="md">
      {change.columns.length > 0 && (
        <ScrollArea
          type="auto"
          viewportProps={{ tabIndex: 0, role: "region", "aria-label": `${name}, scrollable` }}
        >
          <Table aria-label={name} withTableBorder layout="fixed" className={classes.table} miw={600}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th w="22%">Column</Table.Th>
                <Table.Th>Before</Table.Th>
                <Table.Th>After</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {change.columns.map((column) => (
                <Row key={column.name} operation={change.operation} column={column} />
              ))}
            </Table.Tbody>
          </Table>
        </ScrollArea>
      )}
      {change.undo === null ? (
        <Text size="sm">There is no SQL that undoes it. {change.undo_note}</Text>
      ) : (
        <Stack gap={4}>
          <CopyBlock label="Undo as SQL" text={change.undo} copyLabel="Copy SQL" />
          <Text size="xs" c="dimmed">
            {change.undo_note ?? "It overwrites what has been done to the row since."}
          </Text>
        </Stack>
      )}
    </Stack>
  );
}

function Row({ operation, column }: { operation: Change["operation"]; column: ChangedColumn }) {
  const changed = operation === "UPDATE" && differs(column) === true;
  return (
    <Table.Tr>
      <Table.Td>
        <Group gap={4} wrap="nowrap">
          {column.name}
          {column.key && <IconKey size={12} role="img" aria-label="key" />}
        </Group>
        <Text size="xs" c="dimmed">
          {column.type}
        </Text>
      </Table.Td>
      <Table.Td>
        <Value value={column.before} missing={operation === "INSERT" ? "–" : "not known"} />
      </Table.Td>
      <Table.Td className={changed ? classes.changed : undefined}>
        {changed && (
          <>
            <span aria-hidden>≠ </span>
            <VisuallyHidden>changed: </VisuallyHidden>
          </>
        )}
        <Value
          value={column.after}
          missing={operation === "DELETE" ? "–" : operation === "UPDATE" ? "unchanged" : "not known"}
        />
      </Table.Td>
    </Table.Tr>
  );
}

function Value({ value, missing }: { value: ChangedValue | null; missing: string }) {
  const word =
    value === null
      ? missing
      : value.masked
        ? "masked"
        : value.text === null
          ? "NULL"
          : value.text === ""
            ? "empty"
            : null;
  if (word !== null) return <span className={classes.word}>{word}</span>;
  return (
    <>
      <span className={classes.value}>{value?.text}</span>
      {value?.cut && (
        <Text size="xs" c="dimmed">
          cut at 64 KiB
        </Text>
      )}
    </>
  );
}
