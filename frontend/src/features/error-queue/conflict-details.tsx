import { Group, Modal, ScrollArea, Stack, Table, Text } from "@mantine/core";
import { IconKey } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { conflictQuery } from "@/api/conflicts";
import { problemInWords } from "@/api/problem-in-words";
import type { LoggedChange, OpenedConflict } from "@/api/types";
import { useNarrow } from "@/ui/narrow";
import { QueryFaces } from "@/ui/query-faces";
import { RestCall } from "@/ui/rest-call";
import classes from "./parked-details.module.css";
import { ParkedValueCell } from "./parked-value";

interface ConflictDetailsProps {
  streamId: string;
  destinationId: string;
  entry: LoggedChange;
  path: string;
  onClose: () => void;
}

/** An entry of the conflict log opened: what the change wanted, beside what the destination had. */
export function ConflictDetails({ streamId, destinationId, entry, path, onClose }: ConflictDetailsProps) {
  const opened = useQuery(conflictQuery(streamId, destinationId, entry.id));
  const narrow = useNarrow();
  const name = `${entry.operation} ${entry.schema}.${entry.table}`;
  return (
    <Modal opened onClose={onClose} title={`Conflict ${entry.id}: ${name}`} size="80rem" fullScreen={narrow}>
      <Stack gap="md">
        <Text size="sm">{entry.message}</Text>
        <QueryFaces query={opened} inWords={problemInWords} loadingLabel="Reading the entry">
          {(conflict) => (
            <Stack gap="xs">
              <Text size="sm" c="dimmed">
                Change {conflict.change} of transaction {conflict.xid}.{" "}
                {conflict.rows_found === 0
                  ? "The destination had no such row."
                  : "≠ marks values that differ from the row that the destination had."}
              </Text>
              <Rows conflict={conflict} name={name} />
            </Stack>
          )}
        </QueryFaces>
        <RestCall call={{ method: "GET", path: `${path}/${entry.id}` }} />
      </Stack>
    </Modal>
  );
}

function Rows({ conflict, name }: { conflict: OpenedConflict; name: string }) {
  return (
    <ScrollArea
      type="auto"
      viewportProps={{ tabIndex: 0, role: "region", "aria-label": `${name}, scrollable` }}
    >
      <Table aria-label={name} withTableBorder layout="fixed" className={classes.table} miw={640}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th w="16%">Column</Table.Th>
            <Table.Th>New value</Table.Th>
            <Table.Th>Before, at the source</Table.Th>
            <Table.Th>At the destination then</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {conflict.columns.map((column) => (
            <Table.Tr key={column.name}>
              <Table.Td>
                <Group gap={4} wrap="nowrap">
                  {column.name}
                  {column.identity && <IconKey size={12} role="img" aria-label="finds the row" />}
                </Group>
              </Table.Td>
              <ParkedValueCell value={column.wanted} differs={column.wanted_differs} />
              <ParkedValueCell value={column.before} differs={column.before_differs} />
              <ParkedValueCell value={column.now} />
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </ScrollArea>
  );
}
