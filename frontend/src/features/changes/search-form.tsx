import {
  ActionIcon,
  Autocomplete,
  Button,
  Group,
  SegmentedControl,
  Select,
  Stack,
  Text,
  TextInput,
} from "@mantine/core";
import { IconPlus, IconSearch, IconTrash } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { columnsQuery, tablesQuery } from "@/api/databases";
import type { SearchCreate, Searches } from "@/api/types";
import { type Asked, bodyOf, faultsOf, type KeyPart, NOTHING, nameOf, RANGES, tableNamed } from "./asked";

interface SearchFormProps {
  databaseId: string;
  streams: Searches["streams"];
  table?: string;
  pending: boolean;
  onSearch: (body: SearchCreate) => void;
}

/** The form of a search. Tables and columns of today are offered; those of the past can be written. */
export function SearchForm({ databaseId, streams, table = "", pending, onSearch }: SearchFormProps) {
  const [asked, setAsked] = useState<Asked>({ ...NOTHING, table });
  const [stream, setStream] = useState<string | null>(null);
  const [tried, setTried] = useState(false);
  const set = (part: Partial<Asked>) => setAsked((now) => ({ ...now, ...part }));
  const tables = useQuery(tablesQuery(databaseId)).data ?? [];
  const named = tableNamed(asked.table);
  const columns = useQuery({
    ...columnsQuery(databaseId, named ?? { schema: "", table: "" }),
    enabled: tables.some((known) => known.schema === named?.schema && known.table === named.table),
  });
  const faults = faultsOf(asked);
  const shown = tried ? faults : {};
  const setPart = (at: number, part: Partial<KeyPart>) =>
    set({ key: asked.key.map((known, place) => (place === at ? { ...known, ...part } : known)) });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        setTried(true);
        if (Object.keys(faults).length === 0) onSearch(bodyOf(asked, stream));
      }}
    >
      <Stack gap="sm" p={14}>
        <Group align="flex-start" gap="md">
          <Autocomplete
            label="Table"
            placeholder="Any"
            w={280}
            data={[...new Set(tables.map(nameOf))]}
            limit={50}
            value={asked.table}
            error={shown.table}
            onChange={(value) => set({ table: value })}
          />
          <TextInput
            label="Transaction"
            placeholder="Any"
            w={160}
            inputMode="numeric"
            value={asked.xid}
            error={shown.xid}
            onChange={(event) => set({ xid: event.currentTarget.value })}
          />
          {streams.length > 1 && (
            <Select
              label="Stream"
              placeholder="The best"
              clearable
              data={streams.map((known) => ({ value: known.stream_id, label: known.stream_name }))}
              value={stream}
              onChange={setStream}
            />
          )}
        </Group>
        <Stack gap={6} role="group" aria-label="Key">
          <Text size="sm" fw={500}>
            Key
          </Text>
          {asked.key.map((part, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a part has no other name than its place
            <Group key={at} gap={6}>
              <Autocomplete
                aria-label={`Column ${at + 1}`}
                placeholder="Column"
                w={220}
                data={[...new Set(columns.data?.columns.map(({ name }) => name))]}
                value={part.column}
                onChange={(value) => setPart(at, { column: value })}
              />
              <TextInput
                aria-label={`Value ${at + 1}`}
                placeholder="Value"
                w={260}
                value={part.value}
                onChange={(event) => setPart(at, { value: event.currentTarget.value })}
              />
              {asked.key.length > 1 && (
                <ActionIcon
                  variant="subtle"
                  aria-label={`Remove column ${at + 1}`}
                  onClick={() => set({ key: asked.key.filter((_, place) => place !== at) })}
                >
                  <IconTrash size={15} aria-hidden />
                </ActionIcon>
              )}
            </Group>
          ))}
          {shown.key && (
            <Text size="xs" c="var(--tone-bad)" role="alert">
              {shown.key}
            </Text>
          )}
          <Group>
            <Button
              size="compact-xs"
              variant="subtle"
              leftSection={<IconPlus size={13} aria-hidden />}
              onClick={() => set({ key: [...asked.key, { column: "", value: "" }] })}
            >
              Add a column
            </Button>
          </Group>
        </Stack>
        <Group align="flex-end" gap="md">
          <Stack gap={4}>
            <Text size="sm" fw={500}>
              Committed
            </Text>
            <SegmentedControl
              size="xs"
              aria-label="Time"
              data={RANGES}
              value={asked.range}
              onChange={(value) => set({ range: value })}
            />
          </Stack>
          {asked.range === "between" && (
            <>
              <TextInput
                type="datetime-local"
                step={1}
                label="From"
                value={asked.from}
                error={shown.from}
                onChange={(event) => set({ from: event.currentTarget.value })}
              />
              <TextInput
                type="datetime-local"
                step={1}
                label="Until"
                value={asked.to}
                error={shown.to}
                onChange={(event) => set({ to: event.currentTarget.value })}
              />
            </>
          )}
          <Button type="submit" loading={pending} leftSection={<IconSearch size={14} aria-hidden />}>
            Search
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
