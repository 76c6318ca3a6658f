import { Button, Group, Stack, Switch, Text } from "@mantine/core";
import { IconCalendarClock, IconPencil, IconPlus, IconTrash } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { schedulesQuery, useDeleteSchedule, useUpdateSchedule } from "@/api/advisor-schedules";
import { problemInWords } from "@/api/problem-in-words";
import type { Schedule } from "@/api/types";
import { asText, duration, formatTime } from "@/lib/format";
import { AnchorLink } from "@/ui/anchor-link";
import { type Column, DataTable } from "@/ui/data-table";
import { Empty } from "@/ui/faces";
import { Panel } from "@/ui/panel";
import { ProblemAlert } from "@/ui/problem-alert";
import { QueryFaces } from "@/ui/query-faces";
import { ScheduleForm } from "./schedule-form";

interface SchedulesProps {
  streams: { id: string; name: string }[];
  mayAct: boolean;
}

/** Snapshots that are taken by themselves. */
export function Schedules({ streams, mayAct }: SchedulesProps) {
  const query = useQuery(schedulesQuery);
  const [form, setForm] = useState<Schedule | "new" | null>(null);
  const update = useUpdateSchedule();
  const remove = useDeleteSchedule();
  const failed = update.error ?? remove.error;
  const add = (
    <Button
      leftSection={<IconPlus size={15} aria-hidden />}
      disabled={!mayAct}
      onClick={() => setForm("new")}
    >
      Add schedule
    </Button>
  );
  return (
    <Stack gap="sm">
      {failed && <ProblemAlert problem={problemInWords(failed)} />}
      <QueryFaces query={query} inWords={problemInWords} loadingLabel="Loading schedules">
        {(schedules) => (
          <Panel flush title="Schedules" aside={schedules.length > 0 && add}>
            {schedules.length === 0 ? (
              <Empty
                icon={<IconCalendarClock size={40} stroke={1.5} />}
                title="No schedule yet"
                actions={add}
              >
                A run every five minutes is a good start: if something was slow last night, a run shows it.
              </Empty>
            ) : (
              <DataTable
                label="Schedules"
                columns={columns({
                  streams,
                  mayAct,
                  onSwitch: (one, enabled) =>
                    update.mutate({ id: one.id, etag: one.etag, body: { enabled } }),
                  onEdit: setForm,
                  onDelete: (one) => remove.mutate(one.id),
                })}
                rows={schedules}
                rowKey={(schedule) => schedule.id}
              />
            )}
          </Panel>
        )}
      </QueryFaces>
      {form && (
        <ScheduleForm
          schedule={form === "new" ? null : form}
          streams={streams}
          onClose={() => setForm(null)}
        />
      )}
    </Stack>
  );
}

interface ColumnsContext extends SchedulesProps {
  onSwitch: (schedule: Schedule, enabled: boolean) => void;
  onEdit: (schedule: Schedule) => void;
  onDelete: (schedule: Schedule) => void;
}

function columns({ streams, mayAct, onSwitch, onEdit, onDelete }: ColumnsContext): Column<Schedule>[] {
  return [
    {
      key: "name",
      header: "Schedule",
      sortBy: (one) => one.name,
      cell: (one) => (
        <Text size="sm" fw={600}>
          {one.name}
        </Text>
      ),
    },
    {
      key: "paths",
      header: "Paths",
      cell: (one) =>
        one.stream_id === null
          ? "All paths"
          : (streams.find(({ id }) => id === one.stream_id)?.name ?? one.stream_id),
    },
    {
      key: "every",
      header: "Every",
      align: "right",
      sortBy: (one) => one.interval_seconds,
      cell: (one) => asText(duration(one.interval_seconds)),
    },
    {
      key: "window",
      header: "Analyses the last",
      align: "right",
      sortBy: (one) => one.window_seconds,
      cell: (one) => asText(duration(one.window_seconds)),
    },
    {
      key: "last",
      header: "Last run",
      cell: (one) => (
        <>
          {one.last_run_id === null ? (
            "–"
          ) : (
            <AnchorLink to="/advisor/runs/$runId" params={{ runId: String(one.last_run_id) }} size="sm">
              {formatTime(one.last_at)}
            </AnchorLink>
          )}
          {one.last_error && (
            <Text size="xs" style={{ color: "var(--tone-bad)" }} maw={260}>
              {one.last_error}
            </Text>
          )}
        </>
      ),
    },
    { key: "next", header: "Next run", cell: (one) => formatTime(one.next_at) },
    {
      key: "enabled",
      header: "On",
      cell: (one) => (
        <Switch
          size="xs"
          aria-label={`${one.name} is on`}
          checked={one.enabled}
          disabled={!mayAct}
          onChange={(event) => onSwitch(one, event.currentTarget.checked)}
        />
      ),
    },
    {
      key: "actions",
      header: "Actions",
      cell: (one) => (
        <Group gap={6} wrap="nowrap">
          <Button
            variant="default"
            px={8}
            disabled={!mayAct}
            aria-label={`Change ${one.name}`}
            onClick={() => onEdit(one)}
          >
            <IconPencil size={14} aria-hidden />
          </Button>
          <Button
            variant="default"
            px={8}
            disabled={!mayAct}
            aria-label={`Delete ${one.name}`}
            onClick={() => onDelete(one)}
          >
            <IconTrash size={14} aria-hidden />
          </Button>
        </Group>
      ),
    },
  ];
}
