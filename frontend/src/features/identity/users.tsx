import { Button, Group, Modal, PasswordInput, Select, Stack, TextInput } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useCreateUser, useDeleteUser, usersQuery, useUpdateUser } from "@/api/identity";
import { problemInWords } from "@/api/problem-in-words";
import { useResetSecondFactor } from "@/api/second-factor";
import type { User, UserRole } from "@/api/types";
import { formatTime } from "@/lib/format";
import { ConfirmByName } from "@/ui/confirm-by-name";
import { type Column, DataTable } from "@/ui/data-table";
import { FormButtons } from "@/ui/form-buttons";
import { Panel } from "@/ui/panel";
import { ProblemAlert } from "@/ui/problem-alert";
import { QueryFaces } from "@/ui/query-faces";
import { ToneBadge } from "@/ui/tone";
import { PASSWORD_LENGTH_MIN, PasswordForm } from "./password-form";
import { roles } from "./roles";
import { secondFactorInWords } from "./second-factor-words";

type Dialog = { kind: "create" } | { kind: "password" | "delete" | "reset"; user: User } | null;

const enabledInWords = (enabled: boolean) =>
  enabled
    ? ({ label: "Enabled", tone: "good", definition: "May log in." } as const)
    : ({ label: "Disabled", tone: "quiet", definition: "May not log in." } as const);

export function Users({ selfId }: { selfId: string }) {
  const users = useQuery(usersQuery);
  const update = useUpdateUser();
  const remove = useDeleteUser();
  const reset = useResetSecondFactor();
  const [dialog, setDialog] = useState<Dialog>(null);
  const close = () => {
    remove.reset();
    reset.reset();
    setDialog(null);
  };
  const columns: Column<User>[] = [
    { key: "name", header: "Name", sortBy: (user) => user.name, cell: (user) => user.name },
    {
      key: "role",
      header: "Role",
      sortBy: (user) => user.role,
      cell: (user) => (
        <Select
          aria-label={`Role of ${user.name}`}
          size="xs"
          w={290}
          data={roles}
          value={user.role}
          disabled={user.id === selfId}
          allowDeselect={false}
          onChange={(role) =>
            role && update.mutate({ id: user.id, body: { role: role as UserRole }, etag: user.etag })
          }
        />
      ),
    },
    {
      key: "state",
      header: "State",
      cell: (user) => <ToneBadge compact state={enabledInWords(user.enabled)} />,
    },
    {
      key: "second factor",
      header: "Second factor",
      cell: (user) => <ToneBadge compact state={secondFactorInWords(user.second_factor)} />,
    },
    {
      key: "created",
      header: "Created",
      sortBy: (user) => user.created_at,
      cell: (user) => formatTime(user.created_at),
    },
    {
      key: "actions",
      header: "Actions",
      cell: (user) => (
        <Group gap={6} wrap="nowrap">
          <Button
            variant="default"
            disabled={user.id === selfId}
            aria-label={`${user.enabled ? "Disable" : "Enable"} ${user.name}`}
            onClick={() => update.mutate({ id: user.id, body: { enabled: !user.enabled }, etag: user.etag })}
          >
            {user.enabled ? "Disable" : "Enable"}
          </Button>
          <Button
            variant="default"
            disabled={user.id === selfId}
            aria-label={`Set password of ${user.name}`}
            onClick={() => setDialog({ kind: "password", user })}
          >
            Set password
          </Button>
          {user.second_factor && user.id !== selfId && (
            <Button
              variant="default"
              aria-label={`Reset second factor of ${user.name}`}
              onClick={() => setDialog({ kind: "reset", user })}
            >
              Reset second factor
            </Button>
          )}
          <Button
            variant="default"
            disabled={user.id === selfId}
            aria-label={`Delete ${user.name}`}
            onClick={() => setDialog({ kind: "delete", user })}
          >
            Delete
          </Button>
        </Group>
      ),
    },
  ];
  return (
    <Panel
      flush
      title="Users"
      aside={
        <Button
          leftSection={<IconPlus size={14} aria-hidden />}
          onClick={() => setDialog({ kind: "create" })}
        >
          Create user
        </Button>
      }
    >
      {update.isError && <ProblemAlert problem={problemInWords(update.error)} />}
      <QueryFaces query={users} inWords={problemInWords} loadingLabel="Loading users">
        {(known) => <DataTable label="Users" columns={columns} rows={known} rowKey={(user) => user.id} />}
      </QueryFaces>
      <Modal opened={dialog?.kind === "create"} onClose={close} title="Create user">
        <UserForm onDone={close} />
      </Modal>
      <Modal
        opened={dialog?.kind === "password"}
        onClose={close}
        title={dialog?.kind === "password" ? `Password of ${dialog.user.name}` : ""}
      >
        {dialog?.kind === "password" && (
          <PasswordForm userId={dialog.user.id} needsCurrent={false} onDone={close} />
        )}
      </Modal>
      {dialog?.kind === "reset" && (
        <ConfirmByName
          opened
          onClose={close}
          title="Reset second factor"
          verb="Reset"
          name={dialog.user.name}
          call={() => ({ method: "POST", path: `/api/v1/users/${dialog.user.id}:reset-second-factor` })}
          pending={reset.isPending}
          problem={reset.isError && <ProblemAlert problem={problemInWords(reset.error)} />}
          onConfirm={() => reset.mutate(dialog.user.id, { onSuccess: close })}
        >
          For users who have lost their device. {dialog.user.name} will log in with the password alone, and
          all of {dialog.user.name}'s sessions end.
        </ConfirmByName>
      )}
      {dialog?.kind === "delete" && (
        <ConfirmByName
          opened
          onClose={close}
          title="Delete user"
          name={dialog.user.name}
          call={() => ({ method: "DELETE", path: `/api/v1/users/${dialog.user.id}` })}
          pending={remove.isPending}
          problem={remove.isError && <ProblemAlert problem={problemInWords(remove.error)} />}
          onConfirm={() => remove.mutate(dialog.user.id, { onSuccess: close })}
        >
          {dialog.user.name} can no longer log in, and the user's API tokens are deleted.
        </ConfirmByName>
      )}
    </Panel>
  );
}

function UserForm({ onDone }: { onDone: () => void }) {
  const create = useCreateUser();
  const [name, setName] = useState("");
  const [role, setRole] = useState<UserRole>("viewer");
  const [password, setPassword] = useState("");
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate({ name: name.trim(), role, password }, { onSuccess: onDone });
      }}
    >
      <Stack gap="sm">
        {create.isError && <ProblemAlert problem={problemInWords(create.error)} />}
        <TextInput
          label="User name"
          autoComplete="off"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          data-autofocus
        />
        <Select
          label="Role"
          data={roles}
          value={role}
          onChange={(value) => value && setRole(value as UserRole)}
          allowDeselect={false}
        />
        <PasswordInput
          label="Password"
          autoComplete="new-password"
          description={`At least ${PASSWORD_LENGTH_MIN} characters.`}
          value={password}
          onChange={(event) => setPassword(event.currentTarget.value)}
          visibilityToggleButtonProps={{ "aria-label": "Show password" }}
        />
        <FormButtons
          onCancel={onDone}
          disabled={name.trim() === "" || password.length < PASSWORD_LENGTH_MIN}
          loading={create.isPending}
        >
          Create user
        </FormButtons>
      </Stack>
    </form>
  );
}
