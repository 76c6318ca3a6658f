import { Badge, Box, Button, Group, Modal, Stack, Text } from "@mantine/core";
import { IconCpu, IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { enginesQuery, useCreateEnrolment, useDeleteEngine } from "@/api/operations";
import { problemInWords } from "@/api/problem-in-words";
import { sessionQuery } from "@/api/session";
import type { Engine } from "@/api/types";
import { StillUsed } from "@/features/still-used/still-used";
import { bytes, formatAgo, formatTime, percent } from "@/lib/format";
import { covers } from "@/lib/session-role";
import { ConfirmByName } from "@/ui/confirm-by-name";
import { CopyBlock } from "@/ui/copy-block";
import { type Column, DataTable } from "@/ui/data-table";
import { Empty } from "@/ui/faces";
import { PageHeader } from "@/ui/page-header";
import { Panel } from "@/ui/panel";
import { ProblemAlert } from "@/ui/problem-alert";
import { Quantity } from "@/ui/quantity";
import { QueryFaces } from "@/ui/query-faces";
import { RestCallButton } from "@/ui/rest-call";
import { StateBadge } from "@/ui/tone";
import { PropagationAddress } from "./propagation-address";
import { UnknownStreams } from "./unknown-streams";

const ENROLMENT_MINUTES = 60;

export function EnginesPage() {
  const engines = useQuery(enginesQuery);
  const mayAct = covers(useQuery(sessionQuery).data?.user.role, "admin");
  const enrolment = useCreateEnrolment();
  const [removing, setRemoving] = useState<Engine | null>(null);
  const [addressing, setAddressing] = useState<Engine | null>(null);
  const enrol = (
    <Button
      leftSection={<IconPlus size={15} aria-hidden />}
      disabled={!mayAct}
      loading={enrolment.isPending}
      onClick={() => enrolment.mutate(ENROLMENT_MINUTES)}
    >
      Enrol engine
    </Button>
  );
  return (
    <>
      <PageHeader
        title="Engines"
        description="Processes (thalwegd) that run the streams' components, one per host."
        actions={
          <>
            <RestCallButton
              label="REST calls"
              calls={[
                { method: "GET", path: "/api/v1/engines" },
                {
                  method: "POST",
                  path: "/api/v1/engines/enrolments",
                  body: { expires_in_minutes: ENROLMENT_MINUTES },
                },
              ]}
            />
            {enrol}
          </>
        }
      />
      {enrolment.isError && <ProblemAlert problem={problemInWords(enrolment.error)} />}
      <QueryFaces query={engines} inWords={problemInWords} loadingLabel="Loading engines">
        {(known) => (
          <>
            <UnknownStreams engines={known} mayAct={mayAct} />
            <Panel flush>
              {known.length === 0 ? (
                <Empty
                  icon={<IconCpu size={40} stroke={1.5} />}
                  title="No engine is enrolled"
                  actions={enrol}
                >
                  An engine enrols with a token that works once.
                </Empty>
              ) : (
                <DataTable
                  label="Engines"
                  columns={columns(mayAct, setRemoving, setAddressing)}
                  rows={known}
                  rowKey={(engine) => engine.id}
                />
              )}
            </Panel>
          </>
        )}
      </QueryFaces>
      <Modal
        opened={enrolment.isSuccess}
        onClose={() => enrolment.reset()}
        title="Enrol an engine"
        size="lg"
        closeOnClickOutside={false}
      >
        {enrolment.data && (
          <Stack gap="sm">
            <Text size="sm">
              The token enrols one engine, until {formatTime(enrolment.data.expires_at)}. It is shown only
              once.
            </Text>
            <CopyBlock text={enrolment.data.token} label="Enrolment token" copyLabel="Copy token" />
            <Text size="sm">
              On the engine's host, send it with the address and the control token of thalwegd:
            </Text>
            <CopyBlock text={enrolCommand(enrolment.data.token)} label="Enrol by REST" />
          </Stack>
        )}
      </Modal>
      {addressing && <PropagationAddress engine={addressing} onClose={() => setAddressing(null)} />}
      {removing && (
        <DeleteEngine
          engine={engines.data?.find(({ id }) => id === removing.id) ?? removing}
          onClose={() => setRemoving(null)}
        />
      )}
    </>
  );
}

function enrolCommand(token: string): string {
  const body = { token, name: "engine-2", url: "http://HOST:8643", control_token: "CONTENT_OF_TOKEN_FILE" };
  return [
    `curl -X POST '${window.location.origin}/api/v1/engines/enrol'`,
    "  -H 'Content-Type: application/json'",
    `  -d '${JSON.stringify(body, null, 2)}'`,
  ].join(" \\\n");
}

function columns(
  mayAct: boolean,
  remove: (engine: Engine) => void,
  address: (engine: Engine) => void,
): Column<Engine>[] {
  return [
    {
      key: "name",
      header: "Engine",
      sortBy: (engine) => engine.name,
      cell: (engine) => (
        <Box py={3}>
          <Text size="sm" fw={600}>
            {engine.name}
          </Text>
          <Text size="xs" c="dimmed" ff="monospace">
            {engine.url}
          </Text>
          <Text size="xs" c="dimmed">
            {engine.hostname ?? "–"}
            {engine.pid && `, process ${engine.pid}`}
          </Text>
          {engine.wal_archives.length > 0 && (
            <Text size="xs" c="dimmed">
              WAL archives: {engine.wal_archives.join(", ")}
            </Text>
          )}
        </Box>
      ),
    },
    {
      key: "state",
      header: "State",
      sortBy: (engine) => engine.state,
      cell: (engine) => (
        <Box>
          <StateBadge state={engine.state} compact />
          {engine.message && (
            <Text size="xs" maw={300}>
              {engine.message}
            </Text>
          )}
        </Box>
      ),
    },
    {
      key: "seen",
      header: "Heartbeat",
      definition: "When the control plane last got an answer from it.",
      sortBy: (engine) => engine.last_seen_at,
      cell: (engine) => formatAgo(engine.last_seen_at),
    },
    {
      key: "version",
      header: "Version",
      sortBy: (engine) => engine.version,
      cell: (engine) => engine.version ?? "–",
    },
    {
      key: "propagation",
      header: "Propagation",
      definition:
        "Where other engines reach it, and until when its certificate is valid. The certificate is renewed automatically.",
      cell: ({ identity, propagation_address }) =>
        identity ? (
          <Box>
            <Text size="sm" ff="monospace">
              {propagation_address ?? "sends only"}
            </Text>
            <Text size="xs" c="dimmed" title={`${identity.name}, SHA-256 ${identity.fingerprint}`}>
              until {formatTime(identity.not_after)}
            </Text>
          </Box>
        ) : (
          "no identity"
        ),
    },
    {
      key: "memory",
      header: "Memory",
      definition: "Resident memory of the process.",
      align: "right",
      sortBy: (engine) => engine.resident_bytes,
      cell: (engine) => <Quantity quantity={bytes(engine.resident_bytes)} />,
    },
    {
      key: "cpu",
      header: "CPU",
      definition: "Processor time of the process over the last interval, in percent of one core.",
      align: "right",
      sortBy: (engine) => engine.cpu_percent,
      cell: ({ cpu_percent }) => (
        <Quantity quantity={percent(cpu_percent === null ? null : cpu_percent / 100)} />
      ),
    },
    {
      key: "revision",
      header: "Revision",
      definition: "Revision of the desired state on the engine's disk, of the newest revision.",
      align: "right",
      cell: ({ acknowledged_revision, desired_revision }) =>
        `${acknowledged_revision ?? "–"} of ${desired_revision}`,
    },
    {
      key: "streams",
      header: "Streams",
      align: "right",
      sortBy: (engine) => engine.streams.length,
      cell: (engine) => <Badge size="sm">{engine.streams.length}</Badge>,
    },
    {
      key: "actions",
      header: "Actions",
      cell: (engine) => (
        <Group gap={6}>
          <Button
            variant="default"
            disabled={!mayAct || engine.identity === null}
            aria-label={`Address of ${engine.name}`}
            onClick={() => address(engine)}
          >
            Address
          </Button>
          <Button
            variant="default"
            disabled={!mayAct}
            aria-label={`Delete ${engine.name}`}
            onClick={() => remove(engine)}
          >
            Delete
          </Button>
        </Group>
      ),
    },
  ];
}

function DeleteEngine({ engine, onClose }: { engine: Engine; onClose: () => void }) {
  const remove = useDeleteEngine();
  if (engine.streams.length > 0) {
    return (
      <StillUsed
        title="Delete engine"
        name={engine.name}
        uses={engine.streams.map((streamId) => ({ streamId }))}
        onClose={onClose}
      >
        Delete these streams first. Where it only applies at one of several destinations, it is enough to drop
        that destination.
      </StillUsed>
    );
  }
  return (
    <ConfirmByName
      opened
      onClose={onClose}
      title="Delete engine"
      name={engine.name}
      call={() => ({ method: "DELETE", path: `/api/v1/engines/${engine.id}` })}
      pending={remove.isPending}
      problem={remove.isError && <ProblemAlert problem={problemInWords(remove.error)} />}
      onConfirm={() => remove.mutate(engine.id, { onSuccess: onClose })}
    >
      The control plane no longer talks to {engine.name}. The process itself keeps running until it is
      stopped.
    </ConfirmByName>
  );
}
