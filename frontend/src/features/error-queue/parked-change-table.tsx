import { Button, Group, ScrollArea, Stack, Table, Text, Title } from "@mantine/core";
import { IconAlertTriangle, IconKey } from "@tabler/icons-react";
import { useEffect, useRef } from "react";
import type { ParkedChange } from "@/api/types";
import { formatCount } from "@/lib/format";
import { withFullStop } from "@/lib/sentences";
import classes from "./parked-details.module.css";
import { ParkedValueCell } from "./parked-value";

/** The destination's row, or rows, in the place of the change's, in one sentence. */
export function rowInWords(change: ParkedChange): string {
  if (change.problem) return `The destination's row is not known: ${withFullStop(change.problem)}`;
  if (change.operation === "TRUNCATE") return "Deletes all rows of the table.";
  if (change.rows_found === null)
    return "No row was looked up at the destination: the table has no key, or the change carries no value of it.";
  const by = change.found_by.join(", ");
  if (change.rows_found === 0) return `The destination has no such row (looked up by ${by}).`;
  if (change.rows_found === 1) return `The destination has one row, found by ${by}.`;
  return `The destination has ${formatCount(change.rows_found)} rows like it, found by ${by}; showing one of them.`;
}

interface ParkedChangeTableProps {
  change: ParkedChange;
  place: number;
  /** The transaction failed at it. */
  failed: boolean;
  /** Undefined: its engine cannot. */
  onLeaveOut?: () => void;
  onEdit?: () => void;
  onRestore?: () => void;
  restoring: boolean;
}

/** One change of a parked transaction, column by column, and what is decided about it. */
export function ParkedChangeTable(props: ParkedChangeTableProps) {
  const { change, place, failed, onLeaveOut, onEdit, onRestore, restoring } = props;
  const name = `${change.operation} ${change.schema}.${change.table}`;
  const here = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (failed) here.current?.scrollIntoView({ block: "center" });
  }, [failed]);
  return (
    <Stack gap={4} ref={here} className={failed ? classes.failed : undefined}>
      <Group gap="xs">
        {failed && (
          <Group gap={4} wrap="nowrap">
            <IconAlertTriangle size={16} color="var(--tone-warning)" aria-hidden />
            <Text size="sm" fw={500}>
              The transaction failed here
            </Text>
          </Group>
        )}
        <Title order={3} size="sm">
          {place}. {name}
        </Title>
        <Text size="sm" c="dimmed">
          {rowInWords(change)}
        </Text>
        {onEdit && (change.operation === "INSERT" || change.operation === "UPDATE") && (
          <Button variant="default" aria-label={`Edit change ${place}`} onClick={onEdit}>
            Edit
          </Button>
        )}
        {onLeaveOut && !change.edit?.left_out && (
          <Button variant="default" aria-label={`Leave out change ${place}`} onClick={onLeaveOut}>
            Leave out
          </Button>
        )}
        {onRestore && change.edit && (
          <Button
            variant="default"
            aria-label={`Take back the edit of change ${place}`}
            loading={restoring}
            onClick={onRestore}
          >
            Take back
          </Button>
        )}
      </Group>
      {change.edit && (
        <Text size="sm" fw={500}>
          {change.edit.left_out ? "Left out" : "Edited"} when the transaction is executed. Reason:{" "}
          {change.edit.reason}
        </Text>
      )}
      {change.columns.length > 0 && (
        <ScrollArea
          type="auto"
          viewportProps={{ tabIndex: 0, role: "region", "aria-label": `${name}, scrollable` }}
        >
          <Table
            aria-label={`Change ${place}: ${name}`}
            withTableBorder
            layout="fixed"
            className={classes.table}
            miw={640}
          >
            <Table.Thead>
              <Table.Tr>
                <Table.Th w="16%">Column</Table.Th>
                <Table.Th>New value</Table.Th>
                <Table.Th>Before, at the source</Table.Th>
                <Table.Th>At the destination now</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {change.columns.map((column) => (
                <Table.Tr key={column.name}>
                  <Table.Td>
                    <Group gap={4} wrap="nowrap">
                      {column.name}
                      {column.identity && <IconKey size={12} role="img" aria-label="finds the row" />}
                    </Group>
                  </Table.Td>
                  <ParkedValueCell
                    value={column.wanted}
                    differs={column.wanted_differs}
                    edited={change.edit?.values[column.name]}
                  />
                  <ParkedValueCell value={column.before} differs={column.before_differs} />
                  <ParkedValueCell value={column.now} />
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </ScrollArea>
      )}
    </Stack>
  );
}
