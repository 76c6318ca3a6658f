import { Button, Group, Menu, Modal, Stack, Switch, Text, Textarea, TextInput } from "@mantine/core";
import { IconChevronDown, IconDownload, IconPencil, IconTrash } from "@tabler/icons-react";
import { useState } from "react";
import { useDeleteRun, useUpdateRun } from "@/api/advisor";
import { problemInWords } from "@/api/problem-in-words";
import type { AdvisorRun } from "@/api/types";
import { FormButtons } from "@/ui/form-buttons";
import { ProblemAlert } from "@/ui/problem-alert";
import { RestCall } from "@/ui/rest-call";
import { runTitle } from "./runs";

interface RunActionsProps {
  run: AdvisorRun;
  mayAct: boolean;
  onDeleted: () => void;
}

/** Export, name, annotate, keep, delete. */
export function RunActions({ run, mayAct, onDeleted }: RunActionsProps) {
  const [open, setOpen] = useState<"edit" | "delete" | null>(null);
  return (
    <>
      <Button
        variant="default"
        leftSection={<IconPencil size={14} aria-hidden />}
        disabled={!mayAct}
        onClick={() => setOpen("edit")}
      >
        Name and note
      </Button>
      <ExportMenu runId={run.id} />
      <Button
        variant="default"
        leftSection={<IconTrash size={14} aria-hidden />}
        disabled={!mayAct}
        onClick={() => setOpen("delete")}
      >
        Delete
      </Button>
      {open === "edit" && <EditRun run={run} onClose={() => setOpen(null)} />}
      {open === "delete" && <DeleteRun run={run} onClose={() => setOpen(null)} onDeleted={onDeleted} />}
    </>
  );
}

const formats = [
  { label: "Report with charts (HTML)", query: "/report?format=html", extension: "html" },
  { label: "All six tables, pipe-delimited (text)", query: "/report?format=text", extension: "txt" },
  { label: "Component statistics (CSV)", query: "/report?format=csv&table=COMPONENT_STAT", extension: "csv" },
  { label: "Path statistics (CSV)", query: "/report?format=csv&table=PATH_STAT", extension: "csv" },
  { label: "Bottlenecks (CSV)", query: "/report?format=csv&table=PATH_BOTTLENECK", extension: "csv" },
  { label: "Everything (JSON)", query: "", extension: "json" },
] as const;

function ExportMenu({ runId }: { runId: number }) {
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button
          variant="default"
          leftSection={<IconDownload size={14} aria-hidden />}
          rightSection={<IconChevronDown size={13} aria-hidden />}
        >
          Export
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {formats.map(({ label, query, extension }) => (
          <Menu.Item
            key={label}
            component="a"
            href={`/api/v1/advisor/runs/${runId}${query}`}
            download={`advisor-run-${runId}.${extension}`}
          >
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

function EditRun({ run, onClose }: { run: AdvisorRun; onClose: () => void }) {
  const update = useUpdateRun(run.id);
  const [name, setName] = useState(run.name ?? "");
  const [note, setNote] = useState(run.note ?? "");
  const [kept, setKept] = useState(run.kept);
  const body = { ...(name.trim() ? { name: name.trim() } : {}), note, kept };
  return (
    <Modal opened onClose={onClose} title="Name and note" size="lg">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          update.mutate({ body, etag: run.etag }, { onSuccess: onClose });
        }}
      >
        <Stack gap="sm">
          <TextInput
            label="Name"
            placeholder={`Run ${run.id}`}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            data-autofocus
          />
          <Textarea
            label="Note"
            autosize
            minRows={3}
            maxLength={4000}
            value={note}
            onChange={(event) => setNote(event.currentTarget.value)}
          />
          <Switch
            label="Keep this run"
            description="Retention never removes it."
            checked={kept}
            onChange={(event) => setKept(event.currentTarget.checked)}
          />
          {update.isError && <ProblemAlert problem={problemInWords(update.error)} />}
          <RestCall
            call={{
              method: "PATCH",
              path: `/api/v1/advisor/runs/${run.id}`,
              headers: { "If-Match": run.etag },
              body,
            }}
            maxHeight={160}
          />
          <FormButtons onCancel={onClose} loading={update.isPending}>
            Save
          </FormButtons>
        </Stack>
      </form>
    </Modal>
  );
}

function DeleteRun({
  run,
  onClose,
  onDeleted,
}: {
  run: AdvisorRun;
  onClose: () => void;
  onDeleted: () => void;
}) {
  const remove = useDeleteRun(run.id);
  return (
    <Modal opened onClose={onClose} title={`Delete ${runTitle(run)}`}>
      <Stack gap="sm">
        <Text size="sm">
          Its tables and findings are removed. Samples stay as long as history keeps them.
        </Text>
        {remove.isError && <ProblemAlert problem={problemInWords(remove.error)} />}
        <RestCall call={{ method: "DELETE", path: `/api/v1/advisor/runs/${run.id}` }} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button
            color="red"
            loading={remove.isPending}
            onClick={() => remove.mutate(undefined, { onSuccess: onDeleted })}
          >
            Delete
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
