import { Button, Drawer, Group, PasswordInput, Select, Stack, TextInput } from "@mantine/core";
import { IconPlugConnected } from "@tabler/icons-react";
import { useState } from "react";
import { useCreateDatabase, useTestConnection, useUpdateDatabase } from "@/api/databases";
import { problemInWords } from "@/api/problem-in-words";
import type { Database } from "@/api/types";
import type { RestCallSpec } from "@/lib/curl";
import { PortInput } from "@/ui/port-input";
import { ProblemAlert } from "@/ui/problem-alert";
import { RestCallButton } from "@/ui/rest-call";
import { Certificates } from "./certificates";
import {
  type DatabaseFormValues,
  emptyForm,
  type FormFaults,
  formFaults,
  readFromChoices,
  sslModes,
  toCreate,
  toFormValues,
  toTest,
  toUpdate,
} from "./form-values";
import { fieldsOfUri, isUri } from "./uri";

interface DatabaseDrawerProps {
  opened: boolean;
  onClose: () => void;
  /** Null: a new one. */
  database: Database | null;
  onSaved?: (database: Database) => void;
  /** Shows what a test found; the page brings it, since features do not know each other. */
  renderTest: (test: NonNullable<ReturnType<typeof useTestConnection>["data"]>) => React.ReactNode;
}

export function DatabaseDrawer(props: DatabaseDrawerProps) {
  return (
    <Drawer
      opened={props.opened}
      onClose={props.onClose}
      title={props.database ? `Edit ${props.database.name}` : "Add database"}
    >
      <DatabaseForm key={props.database?.id ?? "new"} {...props} />
    </Drawer>
  );
}

/** Neither passwords nor keys are shown by the API, nor here. */
function shown<Body extends { password?: string | null; sslkey?: string | null }>(body: Body): Body {
  const password = body.password ? { password: "********" } : {};
  const key = body.sslkey ? { sslkey: "********" } : {};
  return { ...body, ...password, ...key };
}

function DatabaseForm({ database, onClose, onSaved, renderTest }: DatabaseDrawerProps) {
  const [values, setValues] = useState<DatabaseFormValues>(() =>
    database ? toFormValues(database) : emptyForm,
  );
  const [checked, setChecked] = useState<"no" | "connection" | "all">("no");
  const test = useTestConnection();
  const create = useCreateDatabase();
  const update = useUpdateDatabase(database?.id ?? "");
  const saving = database ? update : create;
  const faults = formFaults(values, database);
  const { name: _name, ...connectionFaults } = faults;
  const shownFaults: FormFaults = checked === "no" ? {} : checked === "all" ? faults : connectionFaults;
  const valid = Object.keys(faults).length === 0;

  const set = <Field extends keyof DatabaseFormValues>(field: Field, value: DatabaseFormValues[Field]) => {
    test.reset();
    setValues((now) => ({ ...now, [field]: value }));
  };
  const setHost = (typed: string) => {
    const fields = isUri(typed) ? fieldsOfUri(typed) : null;
    test.reset();
    setValues((now) => ({ ...now, host: typed, ...fields }));
  };
  const text = (field: "name" | "host" | "dbname" | "user") => ({
    value: values[field],
    onChange: (event: React.ChangeEvent<HTMLInputElement>) => set(field, event.currentTarget.value),
    error: shownFaults[field],
    required: true,
    withAsterisk: false,
  });
  const saved = (result: Database) => {
    onSaved?.(result);
    onClose();
  };
  const save = () => {
    if (database)
      update.mutate({ body: toUpdate(values, database), etag: database.etag }, { onSuccess: saved });
    else create.mutate(toCreate(values), { onSuccess: saved });
  };
  const calls: RestCallSpec[] = [
    { method: "POST", path: "/api/v1/databases:test", body: shown(toTest(values, database)) },
    database
      ? {
          method: "PATCH",
          path: `/api/v1/databases/${database.id}`,
          headers: { "If-Match": database.etag },
          body: shown(toUpdate(values, database)),
        }
      : { method: "POST", path: "/api/v1/databases", body: shown(toCreate(values)) },
  ];

  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        setChecked("all");
        if (valid) save();
      }}
    >
      <Stack gap="sm">
        <TextInput
          data-autofocus
          label="Name"
          description="Shown in the console."
          placeholder="orders"
          {...text("name")}
        />
        <Group grow align="flex-start" preventGrowOverflow={false} wrap="nowrap">
          <TextInput
            label="Host"
            description="Separate several with commas, or paste a postgresql:// URI."
            placeholder="db.example.com"
            {...text("host")}
            onChange={(event) => setHost(event.currentTarget.value)}
          />
          <PortInput value={values.port} onChange={(value) => set("port", value)} error={shownFaults.port} />
        </Group>
        <TextInput label="Database" placeholder="postgres" {...text("dbname")} />
        <TextInput label="User" autoComplete="off" {...text("user")} />
        <PasswordInput
          label="Password"
          description={database?.has_password ? "Leave empty to keep the stored value." : undefined}
          autoComplete="new-password"
          value={values.password}
          error={shownFaults.password}
          onChange={(event) => set("password", event.currentTarget.value)}
          visibilityToggleButtonProps={{ "aria-label": "Show password" }}
        />
        <Select
          label="TLS"
          description="The values of libpq's sslmode."
          data={sslModes}
          value={values.sslmode}
          onChange={(value) => value && set("sslmode", value as DatabaseFormValues["sslmode"])}
          allowDeselect={false}
        />
        <Select
          label="Read from"
          description="For a source whose hosts form one cluster, from PostgreSQL 16 on. Writes always go to the primary."
          data={readFromChoices}
          value={values.read_from}
          onChange={(value) => value && set("read_from", value as DatabaseFormValues["read_from"])}
          allowDeselect={false}
        />
        <Certificates values={values} faults={shownFaults} database={database} onChange={set} />
        {test.isError && <ProblemAlert problem={problemInWords(test.error)} />}
        {test.data && renderTest(test.data)}
        {saving.isError && <ProblemAlert problem={problemInWords(saving.error)} />}
        <Group justify="space-between" mt="xs">
          <Button
            variant="default"
            leftSection={<IconPlugConnected size={14} aria-hidden />}
            loading={test.isPending}
            onClick={() => {
              setChecked((now) => (now === "all" ? now : "connection"));
              if (Object.keys(connectionFaults).length === 0) test.mutate(toTest(values, database));
            }}
          >
            Test connection
          </Button>
          <Group gap="xs">
            <RestCallButton calls={calls} label="REST calls" />
            <Button type="submit" loading={saving.isPending}>
              {database ? "Save" : "Add database"}
            </Button>
          </Group>
        </Group>
      </Stack>
    </form>
  );
}
