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
                  onSwitch: (schedule, enabled) =>
                    update.mutate({ id: schedule.id, etag: schedule.etag, body: { enabled } }),
                  onEdit: setForm,
                  onDelete: (schedule) => remove.mutate(schedule.id),
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
      sortBy: (schedule) => schedule.name,
      cell: (schedule) => (
        <Text size="sm" fw={600}>
          {schedule.name}
        </Text>
      ),
    },
    {
      key: "paths",
      header: "Paths",
      cell: (schedule) =>
        schedule.stream_id === null
          ? "All paths"
          : (streams.find(({ id }) => id === schedule.stream_id)?.name ?? schedule.stream_id),
    },
    {
      key: "every",
      header: "Every",
      align: "right",
      sortBy: (schedule) => schedule.interval_seconds,
      cell: (schedule) => asText(duration(schedule.interval_seconds)),
    },
    {
      key: "window",
      header: "Analyses the last",
      align: "right",
      sortBy: (schedule) => schedule.window_seconds,
      cell: (schedule) => asText(duration(schedule.window_seconds)),
    },
    {
      key: "last",
      header: "Last run",
      cell: (schedule) => (
        <>
          {schedule.last_run_id === null ? (
            "–"
          ) : (
            <AnchorLink to="/advisor/runs/$runId" params={{ runId: String(schedule.last_run_id) }} size="sm">
              {formatTime(schedule.last_at)}
            </AnchorLink>
          )}
          {schedule.last_error && (
            <Text size="xs" style={{ color: "var(--tone-bad)" }} maw={260}>
              {schedule.last_error}
            </Text>
          )}
        </>
      ),
    },
    { key: "next", header: "Next run", cell: (schedule) => formatTime(schedule.next_at) },
    {
      key: "enabled",
      header: "On",
      cell: (schedule) => (
        <Switch
          size="xs"
          aria-label={`${schedule.name} is on`}
          checked={schedule.enabled}
          disabled={!mayAct}
          onChange={(event) => onSwitch(schedule, event.currentTarget.checked)}
        />
      ),
    },
    {
      key: "actions",
      header: "Actions",
      cell: (schedule) => (
        <Group gap={6} wrap="nowrap">
          <Button
            variant="default"
            px={8}
            disabled={!mayAct}
            aria-label={`Change ${schedule.name}`}
            onClick={() => onEdit(schedule)}
          >
            <IconPencil size={14} aria-hidden />
          </Button>
          <Button
            variant="default"
            px={8}
            disabled={!mayAct}
            aria-label={`Delete ${schedule.name}`}
            onClick={() => onDelete(schedule)}
          >
            <IconTrash size={14} aria-hidden />
          </Button>
        </Group>
      ),
    },
  ];
}
