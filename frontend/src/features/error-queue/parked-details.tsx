import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { problemInWords } from "@/api/problem-in-words";
import { parkedContentsQuery, useParkedEdit } from "@/api/streams";
import type { ParkedChange, ParkedTransaction } from "@/api/types";
import { counted, formatCount } from "@/lib/format";
import { useNarrow } from "@/ui/narrow";
import { ProblemAlert } from "@/ui/problem-alert";
import { QueryFaces } from "@/ui/query-faces";
import { RestCall } from "@/ui/rest-call";
import { ShowOlder } from "@/ui/show-older";
import { type ChangeDecision, EditChange } from "./edit-change";
import { ParkedChangeTable } from "./parked-change-table";

interface ParkedDetailsProps {
  streamId: string;
  destinationId: string;
  error: ParkedTransaction;
  path: string;
  onClose: () => void;
}

const FIRST_PAGE = 100;
const BEFORE_THE_FAILED = 5;

/** The page with a change begins some changes before it. */
function pageOf(number: number): number {
  return Math.max(0, number - 1 - BEFORE_THE_FAILED);
}

/** A parked transaction opened, at the change at which it failed: what it wanted, beside what the destination has. */
export function ParkedDetails({ streamId, destinationId, error, path, onClose }: ParkedDetailsProps) {
  const failed = error.failed_change;
  const [after, setAfter] = useState(failed !== null && failed > FIRST_PAGE ? pageOf(failed) : 0);
  const contents = useInfiniteQuery(parkedContentsQuery(streamId, destinationId, error.id, after));
  const narrow = useNarrow();
  const restored = useParkedEdit(streamId, destinationId, error.id);
  const [deciding, setDeciding] = useState<ChangeDecision | null>(null);
  const actionsOf = (change: ParkedChange, etag: string | null) => {
    const { number } = change;
    if (number === null) return {};
    return {
      onLeaveOut: () => setDeciding({ change, number, etag, leavesOut: true }),
      onEdit: () => setDeciding({ change, number, etag, leavesOut: false }),
      onRestore: () => restored.mutate({ number, body: null, etag }),
    };
  };
  return (
    <Modal opened onClose={onClose} title={`Transaction ${error.xid}`} size="80rem" fullScreen={narrow}>
      <Stack gap="md">
        <Text size="sm">{error.message}</Text>
        <QueryFaces query={contents} inWords={problemInWords} loadingLabel="Reading the transaction">
          {({ pages }) => {
            const changes = pages.flatMap((page) => page.changes);
            const total = pages[0]?.changes_total ?? 0;
            const etag = pages[0]?.error.etag ?? null;
            const isShown = (number: number) => changes.some((change) => change.number === number);
            return (
              <Stack gap="md">
                <Group justify="space-between">
                  <Text size="sm" c="dimmed">
                    {counted(total, "change")}.{partInWords(changes, total)} ≠ marks values that differ from
                    the destination's row now.
                  </Text>
                  <Group gap="sm">
                    {after > 0 && (
                      <Button variant="default" onClick={() => setAfter(0)}>
                        Show from the first change
                      </Button>
                    )}
                    {failed !== null && !isShown(failed) && (
                      <Button variant="default" onClick={() => setAfter(pageOf(failed))}>
                        Go to change {formatCount(failed)}, which failed
                      </Button>
                    )}
                    <Button
                      variant="default"
                      loading={contents.isFetching}
                      onClick={() => void contents.refetch()}
                    >
                      Read again
                    </Button>
                  </Group>
                </Group>
                {restored.isError && <ProblemAlert problem={problemInWords(restored.error)} />}
                {changes.map((change, place) => (
                  <ParkedChangeTable
                    // biome-ignore lint/suspicious/noArrayIndexKey: the tables of one TRUNCATE share their number
                    key={`${change.number} ${place}`}
                    change={change}
                    place={change.number ?? place + 1}
                    failed={change.number !== null && change.number === failed}
                    restoring={restored.isPending && restored.variables?.number === change.number}
                    {...actionsOf(change, etag)}
                  />
                ))}
                <ShowOlder query={contents} label="Show more changes" />
              </Stack>
            );
          }}
        </QueryFaces>
        <RestCall
          call={{ method: "GET", path: `${path}/${error.id}${after > 0 ? `?after=${after}` : ""}` }}
        />
        {deciding && (
          <EditChange
            {...deciding}
            streamId={streamId}
            destinationId={destinationId}
            errorId={error.id}
            path={path}
            onClose={() => setDeciding(null)}
          />
        )}
      </Stack>
    </Modal>
  );
}

/** Those that are shown, where they are not all; with a space before it. */
function partInWords(changes: ParkedChange[], total: number): string {
  const numbers = changes.map((change, place) => change.number ?? place + 1);
  const first = numbers[0];
  const last = numbers.at(-1);
  if (first === undefined || last === undefined || last - first + 1 >= total) return "";
  return ` ${formatCount(first)} to ${formatCount(last)} are shown.`;
}
