import { Checkbox, Group, Modal, Stack, Table, Text, Textarea } from "@mantine/core";
import { useState } from "react";
import { problemInWords } from "@/api/problem-in-words";
import { useParkedEdit } from "@/api/streams";
import type { ParkedChange, ParkedColumn } from "@/api/types";
import { FormButtons } from "@/ui/form-buttons";
import { ProblemAlert } from "@/ui/problem-alert";
import { isReasonShort, ReasonInput } from "@/ui/reason-input";
import { RestCall } from "@/ui/rest-call";

type Values = Record<string, string | null>;

export interface ChangeDecision {
  change: ParkedChange;
  number: number;
  /** Of the transaction as it was when this was opened: what others decide meanwhile is not undone unseen. */
  etag: string | null;
  /** False: it gets other values. */
  leavesOut: boolean;
}

interface EditChangeProps extends ChangeDecision {
  streamId: string;
  destinationId: string;
  errorId: number;
  path: string;
  onClose: () => void;
}

/** Leaves a change of a parked transaction out, or gives it other values. Asks why: queue and audit log keep it. */
export function EditChange(props: EditChangeProps) {
  const { errorId, change, number, etag, leavesOut, path, onClose } = props;
  const [reason, setReason] = useState(change.edit?.reason ?? "");
  const [values, setValues] = useState<Values>(change.edit?.values ?? {});
  const act = useParkedEdit(props.streamId, props.destinationId, errorId);
  const body = { left_out: leavesOut, values: leavesOut ? {} : values, reason: reason.trim() };
  const incomplete = isReasonShort(reason) || (!leavesOut && Object.keys(values).length === 0);
  return (
    <Modal
      opened
      onClose={onClose}
      size={leavesOut ? "lg" : "60rem"}
      title={`${leavesOut ? "Leave out" : "Edit"} change ${number}: ${change.operation} ${change.schema}.${change.table}`}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          act.mutate({ number, body, etag }, { onSuccess: onClose });
        }}
      >
        <Stack gap="sm">
          <Text size="sm">
            {leavesOut
              ? "When the transaction is executed, its other changes are applied and this one is not."
              : "When the transaction is executed, the columns that you choose get your values, in PostgreSQL's text form. The change stays recorded as it came. A dry run tells whether the destination accepts them. A later update of the row brings the source's values back: edit that one, too."}
          </Text>
          {!leavesOut && <ValueInputs columns={change.columns} values={values} onChange={setValues} />}
          <ReasonInput
            description="Shown in the queue and recorded in the audit log."
            value={reason}
            onChange={setReason}
            required
            asks={leavesOut}
          />
          {act.isError && <ProblemAlert problem={problemInWords(act.error)} />}
          <RestCall
            call={{
              method: "PUT",
              path: `${path}/${errorId}/changes/${number}`,
              ...(etag === null ? {} : { headers: { "If-Match": etag } }),
              body,
            }}
          />
          <FormButtons onCancel={onClose} disabled={incomplete} loading={act.isPending}>
            {leavesOut ? "Leave out" : "Save"}
          </FormButtons>
        </Stack>
      </form>
    </Modal>
  );
}

interface ValueInputsProps {
  columns: ParkedColumn[];
  values: Values;
  onChange: (values: Values) => void;
}

function ValueInputs({ columns, values, onChange }: ValueInputsProps) {
  // Texts over which NULL was ticked: they come again when it is unticked.
  const [typed, setTyped] = useState<Values>({});
  const without = (name: string) =>
    Object.fromEntries(Object.entries(values).filter(([column]) => column !== name));
  return (
    <Table aria-label="New values" withTableBorder layout="fixed">
      <Table.Thead>
        <Table.Tr>
          <Table.Th w="30%">Column</Table.Th>
          <Table.Th>New value</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {columns.map(({ name, wanted }, place) => {
          const value = values[name];
          return (
            <Table.Tr key={name}>
              <Table.Td>
                <Checkbox
                  data-autofocus={place === 0 || undefined}
                  label={name}
                  aria-label={`Edit ${name}`}
                  checked={value !== undefined}
                  onChange={(event) =>
                    onChange(
                      event.currentTarget.checked ? { ...values, [name]: initial(wanted) } : without(name),
                    )
                  }
                />
              </Table.Td>
              <Table.Td>
                {value !== undefined && (
                  <Group gap="sm" wrap="nowrap" align="center">
                    <Textarea
                      aria-label={`New value of ${name}`}
                      description={whyNotFilledIn(wanted)}
                      value={value ?? ""}
                      disabled={value === null}
                      autosize
                      maxRows={6}
                      style={{ flex: 1 }}
                      onChange={(event) => onChange({ ...values, [name]: event.currentTarget.value })}
                    />
                    <Checkbox
                      label="NULL"
                      aria-label={`${name} is NULL`}
                      checked={value === null}
                      onChange={(event) => {
                        if (value !== null) setTyped({ ...typed, [name]: value });
                        onChange({
                          ...values,
                          [name]: event.currentTarget.checked ? null : (typed[name] ?? initial(wanted) ?? ""),
                        });
                      }}
                    />
                  </Group>
                )}
              </Table.Td>
            </Table.Tr>
          );
        })}
      </Table.Tbody>
    </Table>
  );
}

function whyNotFilledIn({ state, cut }: ParkedColumn["wanted"]): string | undefined {
  if (state === "unchanged") return "The source did not send this value.";
  return cut ? "The value that came is too long to be filled in." : undefined;
}

/** The value that came, where all of it is known as text. */
function initial(wanted: ParkedColumn["wanted"]): string | null {
  if (wanted.state === "null") return null;
  return wanted.state === "text" && !wanted.cut ? (wanted.text ?? "") : "";
}
