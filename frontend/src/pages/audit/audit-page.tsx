import { Anchor, Box, Button, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconHistory } from "@tabler/icons-react";
import { useInfiniteQuery } from "@tanstack/react-query";
import { auditQuery } from "@/api/operations";
import { problemInWords } from "@/api/problem-in-words";
import type { AuditEntry } from "@/api/types";
import { formatTime } from "@/lib/format";
import { type Column, DataTable } from "@/ui/data-table";
import { Empty } from "@/ui/faces";
import { PageHeader } from "@/ui/page-header";
import { Panel } from "@/ui/panel";
import { QueryFaces } from "@/ui/query-faces";
import { RestCallButton } from "@/ui/rest-call";
import { ShowOlder } from "@/ui/show-older";
import { changedFields } from "./changed-fields";

const columns: Column<AuditEntry>[] = [
  {
    key: "at",
    header: "Time",
    sortBy: (entry) => entry.at,
    cell: (entry) => <span style={{ whiteSpace: "nowrap" }}>{formatTime(entry.at)}</span>,
    width: 150,
  },
  {
    key: "actor",
    header: "User",
    sortBy: (entry) => entry.actor_name,
    cell: (entry) => (
      <>
        {entry.actor_name}{" "}
        <Text span size="xs" c="dimmed">
          by {entry.via}
          {entry.address ? ` from ${entry.address}` : ""}
        </Text>
      </>
    ),
  },
  {
    key: "action",
    header: "Action",
    sortBy: (entry) => entry.sentence,
    cell: (entry) => <span title={entry.action}>{entry.sentence}</span>,
  },
  {
    key: "target",
    header: "Target",
    sortBy: (entry) => entry.target_name,
    cell: (entry) => `${entry.target_type} ${entry.target_name}`,
  },
  { key: "change", header: "Change", cell: (entry) => <Change entry={entry} />, width: "36%" },
];

const FIELDS_SHOWN = 3;

function Change({ entry }: { entry: AuditEntry }) {
  const [opened, { toggle }] = useDisclosure(false);
  const discards = entry.action === "stream_errors_delete";
  const fields = changedFields(entry.before, entry.after).filter(
    ({ field }) => !discards || field !== "changes",
  );
  if (fields.length === 0) return <span>–</span>;
  const shown = opened ? fields : fields.slice(0, FIELDS_SHOWN);
  return (
    <Box>
      {discards && !entry.after?.refused && (
        <Anchor size="xs" display="block" href={`/api/v1/audit/${entry.id}:changes`} download>
          Download the discarded changes
        </Anchor>
      )}
      {shown.map(({ field, before, after }) => (
        <Text key={field} size="xs" style={{ overflowWrap: "anywhere" }}>
          <Text span fw={600} size="xs">
            {field}
          </Text>
          : {before !== null && `${before} → `}
          {after ?? "removed"}
        </Text>
      ))}
      {fields.length > FIELDS_SHOWN && (
        <Button
          size="compact-xs"
          variant="subtle"
          aria-expanded={opened}
          aria-label={`${opened ? "Show less" : `Show all ${fields.length} fields`} of ${entry.action} at ${formatTime(entry.at)}`}
          onClick={toggle}
        >
          {opened ? "Show less" : `Show all ${fields.length}`}
        </Button>
      )}
    </Box>
  );
}

export function AuditPage() {
  const query = useInfiniteQuery(auditQuery);
  return (
    <>
      <PageHeader
        title="Audit"
        description="All changes and their authors, newest first."
        actions={<RestCallButton calls={[{ method: "GET", path: "/api/v1/audit" }]} />}
      />
      <QueryFaces query={query} inWords={problemInWords} loadingLabel="Loading the audit log">
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.items);
          return (
            <Panel flush>
              {rows.length === 0 ? (
                <Empty icon={<IconHistory size={40} stroke={1.5} />} title="No changes yet">
                  From now on, changes by users, tokens and the command line are recorded here, with who did
                  it and when.
                </Empty>
              ) : (
                <DataTable
                  label="Audit log"
                  columns={columns}
                  rows={rows}
                  rowKey={(entry) => entry.id}
                  cardName={(entry) => `${entry.sentence}: ${entry.target_name}`}
                />
              )}
              <ShowOlder query={query} />
            </Panel>
          );
        }}
      </QueryFaces>
    </>
  );
}
