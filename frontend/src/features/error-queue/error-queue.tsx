import { Button, Group, Stack, Switch, Text } from "@mantine/core";
import { IconCircleCheck } from "@tabler/icons-react";
import { useInfiniteQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { ProblemError } from "@/api/problem";
import { problemInWords } from "@/api/problem-in-words";
import { parkedQuery, useParkedAction } from "@/api/streams";
import type { ErrorCause, ParkedTransaction } from "@/api/types";
import { formatCount } from "@/lib/format";
import { oldestParked } from "@/lib/sums";
import { DataTable } from "@/ui/data-table";
import { Empty } from "@/ui/faces";
import { HelpLink } from "@/ui/help-link";
import { useNarrow } from "@/ui/narrow";
import { ProblemAlert } from "@/ui/problem-alert";
import { QueryFaces } from "@/ui/query-faces";
import { RestCallButton } from "@/ui/rest-call";
import { ShowOlder } from "@/ui/show-older";
import { ConfirmDecision, type Decision } from "./confirm-decision";
import { Dependants } from "./dependants";
import { ErrorCauses } from "./error-causes";
import { ExecuteSeveral } from "./execute-several";
import { ExecutionProgress } from "./execution-progress";
import { narrowColumns, parkedColumns } from "./parked-columns";
import { ParkedDetails } from "./parked-details";
import { asRole } from "./role-input";

interface ErrorQueueProps {
  streamId: string;
  destinationId: string;
  mayAct: boolean;
  /** Buttons that carry out a cause's cure, where more than executing does. */
  cureOf?: (cause: ErrorCause) => ReactNode;
  /** Only those with this cause are listed. */
  cause: string | undefined;
  onCause: (cause: string | undefined) => void;
}

const guide = <HelpLink help="guides/error-queue" about="the error queue" />;

/** Transactions that failed for good and were parked whole at the destination. */
export function ErrorQueue({ streamId, destinationId, mayAct, cureOf, cause, onCause }: ErrorQueueProps) {
  const [rootsOnly, setRootsOnly] = useState(true);
  const parked = useInfiniteQuery(parkedQuery(streamId, destinationId, rootsOnly && !cause, cause));
  const act = useParkedAction(streamId, destinationId);
  const [deciding, setDeciding] = useState<Decision | null>(null);
  const [opened, setOpened] = useState<ParkedTransaction | null>(null);
  const [unfolded, setUnfolded] = useState<ReadonlySet<number>>(new Set());
  const narrow = useNarrow();
  const path = `/api/v1/streams/${streamId}/destinations/${destinationId}/errors`;
  const actions = {
    mayAct,
    executing: act.isPending && act.variables.reason === null ? act.variables.errorId : null,
    discarding: act.isPending && act.variables.reason !== null ? act.variables.errorId : null,
    onOpen: setOpened,
    onDecide: (error: ParkedTransaction, discards: boolean) => setDeciding({ error, discards }),
    unfolded,
    onUnfold: ({ id }: ParkedTransaction) =>
      setUnfolded((now) => new Set(now.has(id) ? [...now].filter((other) => other !== id) : [...now, id])),
  };

  return (
    <QueryFaces query={parked} inWords={problemInWords} loadingLabel="Loading the error queue">
      {({ pages }) => {
        const first = pages[0];
        if (!first || first.total === 0)
          return (
            <Empty icon={<IconCircleCheck size={36} stroke={1.5} />} title="The error queue is empty">
              A transaction that fails permanently is parked here whole, together with those that depend on
              it, if a policy in error_policies says so or, where none matches, disable_on_error is off.
              <br />
              {guide}
            </Empty>
          );
        const mayExecute = mayAct && first.execution?.state !== "RUNNING";
        return (
          <Stack gap="xs">
            {act.isError && (
              <ProblemAlert
                problem={problemInWords(act.error)}
                actions={
                  isNotKeptWhole(act.error) && (
                    <Button variant="default" onClick={() => act.mutate({ ...act.variables, partly: true })}>
                      Discard it, and keep a part in the audit log
                    </Button>
                  )
                }
              />
            )}
            <ExecutionProgress execution={first.execution} />
            <Group justify="space-between" px={14}>
              <Group gap="sm">
                <Text size="sm">{countsInWords(first.total, first.roots)}</Text>
                <Text size="sm" c="dimmed">
                  {oldestParked(
                    (first.causes ?? []).map(({ oldest }) => ({ error_queue_oldest_at: oldest })),
                  )}
                </Text>
                {guide}
              </Group>
              <Group gap="sm">
                <Switch
                  label="Show waiting transactions"
                  checked={!rootsOnly}
                  disabled={cause !== undefined}
                  onChange={(event) => setRootsOnly(!event.currentTarget.checked)}
                />
                <ExecuteSeveral
                  streamId={streamId}
                  destinationId={destinationId}
                  total={first.total}
                  path={path}
                  disabled={!mayExecute}
                />
                <RestCallButton
                  label="REST calls"
                  calls={[
                    { method: "GET", path: listPath(path, rootsOnly, cause) },
                    { method: "GET", path: `${path}/ERROR_ID` },
                    { method: "GET", path: `${path}/ERROR_ID?after=NUMBER` },
                    { method: "GET", path: `${path}/ERROR_ID/dependants` },
                    {
                      method: "PUT",
                      path: `${path}/ERROR_ID/changes/NUMBER`,
                      headers: { "If-Match": "ETAG" },
                      body: { left_out: true, reason: "WHY" },
                    },
                    {
                      method: "DELETE",
                      path: `${path}/ERROR_ID/changes/NUMBER`,
                      headers: { "If-Match": "ETAG" },
                    },
                    { method: "POST", path: `${path}/ERROR_ID/dry-run` },
                    { method: "POST", path: `${path}/ERROR_ID/execute` },
                    { method: "POST", path: `${path}:execute` },
                    { method: "POST", path: `${path}:execute?cause=CAUSE` },
                    { method: "DELETE", path: `${path}/ERROR_ID?reason=WHY` },
                  ]}
                />
              </Group>
            </Group>
            {first.causes && (
              <ErrorCauses
                streamId={streamId}
                destinationId={destinationId}
                causes={first.causes}
                cureOf={cureOf}
                chosen={cause}
                onChoose={onCause}
                path={path}
                mayExecute={mayExecute}
              />
            )}
            {cause && (
              <Group gap="sm" px={14}>
                <Text size="sm">The list shows only the transactions with one cause.</Text>
                <Button variant="default" onClick={() => onCause(undefined)}>
                  Show all
                </Button>
              </Group>
            )}
            <DataTable
              label="Error queue"
              empty="No transactions with this cause."
              columns={narrow ? narrowColumns(actions) : parkedColumns(actions)}
              rows={pages.flatMap((page) => page.errors)}
              rowKey={(error) => String(error.id)}
              below={(error) =>
                unfolded.has(error.id) ? (
                  <Dependants
                    streamId={streamId}
                    destinationId={destinationId}
                    errorId={error.id}
                    path={path}
                  />
                ) : null
              }
            />
            <ShowOlder query={parked} label="Show more" />
            {deciding && (
              <ConfirmDecision
                {...deciding}
                streamId={streamId}
                destinationId={destinationId}
                path={path}
                onClose={() => setDeciding(null)}
                onConfirm={(reason, role) => {
                  act.mutate({ errorId: deciding.error.id, reason, body: asRole(role) });
                  setDeciding(null);
                }}
              />
            )}
            {opened && (
              <ParkedDetails
                streamId={streamId}
                destinationId={destinationId}
                error={opened}
                path={path}
                onClose={() => setOpened(null)}
              />
            )}
          </Stack>
        );
      }}
    </QueryFaces>
  );
}

function isNotKeptWhole(error: Error): boolean {
  return error instanceof ProblemError && error.problem.code === "not_kept_whole";
}

function listPath(path: string, rootsOnly: boolean, cause: string | undefined): string {
  if (cause) return `${path}?cause=${cause}`;
  return rootsOnly ? `${path}?roots_only=true` : path;
}

/** Those that wait are folded away under those that they wait for. */
export function countsInWords(total: number, roots: number): string {
  const parked = total === 1 ? "1 transaction is parked" : `${formatCount(total)} transactions are parked`;
  const waiting = Math.max(0, total - roots);
  if (waiting === 0) return `${parked}.`;
  const failed = roots === 1 ? "1 at the head" : `${formatCount(roots)} at the head`;
  const behind = waiting === 1 ? "1 waiting" : `${formatCount(waiting)} waiting`;
  return `${parked}: ${failed}, ${behind}.`;
}
