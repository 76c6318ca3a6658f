import {
  Anchor,
  Button,
  Code,
  Group,
  Modal,
  NumberInput,
  Select,
  Stack,
  Text,
  TextInput,
} from "@mantine/core";
import { IconKey, IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { tokensQuery, useCreateToken, useRevokeToken } from "@/api/identity";
import { problemInWords } from "@/api/problem-in-words";
import type { Role, Token, UserRole } from "@/api/types";
import { formatAgo, formatTime } from "@/lib/format";
import { type StateInWords, sentenceCase } from "@/lib/states";
import { CopyBlock } from "@/ui/copy-block";
import { type Column, DataTable } from "@/ui/data-table";
import { Empty } from "@/ui/faces";
import { FormButtons } from "@/ui/form-buttons";
import { Panel } from "@/ui/panel";
import { ProblemAlert } from "@/ui/problem-alert";
import { QueryFaces } from "@/ui/query-faces";
import { RestCall } from "@/ui/rest-call";
import { ToneBadge } from "@/ui/tone";
import { tokenRolesUpTo } from "./roles";

const DAYS_MAX = 3650;

export function tokenInWords({ revoked_at, expires_at }: Token, now = Date.now()): StateInWords {
  if (revoked_at) return { label: "Revoked", tone: "quiet", definition: `Since ${formatTime(revoked_at)}.` };
  if (expires_at && Date.parse(expires_at) < now)
    return { label: "Expired", tone: "quiet", definition: `Since ${formatTime(expires_at)}.` };
  return {
    label: "Valid",
    tone: "good",
    definition: expires_at ? `Until ${formatTime(expires_at)}.` : "Never expires.",
  };
}

export function Tokens({ role }: { role: UserRole }) {
  const tokens = useQuery(tokensQuery);
  const revoke = useRevokeToken();
  const [creating, setCreating] = useState(false);
  const columns: Column<Token>[] = [
    { key: "name", header: "Name", sortBy: (token) => token.name, cell: (token) => token.name },
    { key: "prefix", header: "Begins with", cell: (token) => <Code>{token.prefix}…</Code> },
    { key: "user", header: "User", sortBy: (token) => token.user_name, cell: (token) => token.user_name },
    { key: "role", header: "Role", sortBy: (token) => token.role, cell: (token) => sentenceCase(token.role) },
    { key: "state", header: "State", cell: (token) => <ToneBadge compact state={tokenInWords(token)} /> },
    {
      key: "used",
      header: "Last used",
      sortBy: (token) => token.last_used_at,
      cell: (token) => formatAgo(token.last_used_at),
    },
    {
      key: "expires",
      header: "Expires",
      sortBy: (token) => token.expires_at,
      cell: (token) => (token.expires_at ? formatTime(token.expires_at) : "never"),
    },
    {
      key: "actions",
      header: "Actions",
      cell: (token) => (
        <Button
          variant="default"
          disabled={token.revoked_at !== null}
          aria-label={`Revoke ${token.name}`}
          loading={revoke.isPending && revoke.variables === token.id}
          onClick={() => revoke.mutate(token.id)}
        >
          Revoke
        </Button>
      ),
    },
  ];
  return (
    <Panel
      flush
      title="API tokens"
      aside={
        <Group gap="md">
          <Anchor href="/api/docs" target="_blank" size="sm">
            Reference of the REST API
          </Anchor>
          <Button leftSection={<IconPlus size={14} aria-hidden />} onClick={() => setCreating(true)}>
            Create token
          </Button>
        </Group>
      }
    >
      {revoke.isError && <ProblemAlert problem={problemInWords(revoke.error)} />}
      <QueryFaces query={tokens} inWords={problemInWords} loadingLabel="Loading tokens">
        {(known) =>
          known.length === 0 ? (
            <Empty icon={<IconKey size={36} stroke={1.5} />} title="No API tokens">
              A token lets scripts and the thalweg command line use the API.
            </Empty>
          ) : (
            <DataTable label="API tokens" columns={columns} rows={known} rowKey={(token) => token.id} />
          )
        }
      </QueryFaces>
      <Modal
        opened={creating}
        onClose={() => setCreating(false)}
        title="Create token"
        closeOnClickOutside={false}
      >
        <TokenForm role={role} onDone={() => setCreating(false)} />
      </Modal>
    </Panel>
  );
}

function TokenForm({ role, onDone }: { role: UserRole; onDone: () => void }) {
  const create = useCreateToken();
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState<Role>("viewer");
  const [days, setDays] = useState<number | string>(90);
  const body = { name: name.trim(), role: chosen, expires_in_days: Number(days) };
  const fits =
    Number.isInteger(body.expires_in_days) && body.expires_in_days >= 1 && body.expires_in_days <= DAYS_MAX;
  if (create.data) {
    return (
      <Stack gap="sm">
        <Text size="sm">Copy the token now: only its hash is stored, so it cannot be shown again.</Text>
        <CopyBlock text={create.data.secret} label="API token" copyLabel="Copy token" />
        <Group justify="flex-end">
          <Button onClick={onDone}>Done</Button>
        </Group>
      </Stack>
    );
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate(body);
      }}
    >
      <Stack gap="sm">
        {create.isError && <ProblemAlert problem={problemInWords(create.error)} />}
        <TextInput
          label="Name"
          description="Its purpose."
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          data-autofocus
        />
        <Select
          label="Role"
          data={tokenRolesUpTo(role)}
          value={chosen}
          onChange={(value) => value && setChosen(value as Role)}
          allowDeselect={false}
        />
        <NumberInput
          label="Expires after"
          suffix=" days"
          min={1}
          max={DAYS_MAX}
          allowDecimal={false}
          value={days}
          onChange={setDays}
          error={fits ? undefined : `From 1 to ${DAYS_MAX} days.`}
        />
        <RestCall call={{ method: "POST", path: "/api/v1/tokens", body }} />
        <FormButtons onCancel={onDone} disabled={body.name === "" || !fits} loading={create.isPending}>
          Create token
        </FormButtons>
      </Stack>
    </form>
  );
}
