import { Button, Fieldset, Group, Modal, Select, Stack, Text } from "@mantine/core";
import { IconPencil } from "@tabler/icons-react";
import { useState } from "react";
import type { ScopedRules, TableRules } from "@/api/types";
import { rowRulesOf, withRowRules } from "./matching";
import { RowRulesEditor } from "./row-rules-editor";
import { everywhere, ofSchema, ofTable, placeInWords, type RulePlace, type TableName } from "./rule-scopes";

interface RowRulesProps {
  sourceId: string;
  /** The engine that captures; null: the only one. */
  captureEngineId: string | null;
  /** Left out: it is not created yet. */
  stream?: { id: string; name: string };
  /** Those that may have rules. */
  tables: TableName[];
  rules: TableRules;
  onChange: (rules: TableRules) => void;
  /** The destination whose own rules they are, where others are beside them. */
  destination?: string;
}

function summary({ positive, negative }: ScopedRules): string {
  const all = [...(positive ?? []), ...(negative ?? [])];
  if (all.length === 0) return "nothing passes";
  return all.map((rule) => rule.name).join(", ");
}

const keyOf = ({ schema, table }: Omit<RulePlace, "scope">) =>
  JSON.stringify([schema ?? null, table ?? null]);

/** Rules for rows: what has any, all tables, schemas or single ones, and a way to the editor for the others. */
export function RowRules(props: RowRulesProps) {
  const { sourceId, captureEngineId, stream, tables, rules, onChange, destination } = props;
  const [edited, setEdited] = useState<RulePlace | null>(null);
  const ruled = rules.row_rules ?? [];
  if (tables.length === 0 && ruled.length === 0) return null;
  const at = destination ? ` at ${destination}` : "";
  const schemas = [...new Set(tables.map(({ schema }) => schema))].sort();
  const isFree = (place: RulePlace) => !rowRulesOf(rules, place);
  const wide = [everywhere, ...schemas.map(ofSchema)].filter(isFree);
  const single = tables.map(ofTable).filter(isFree);
  const asOption = (place: RulePlace) => ({ value: keyOf(place), label: placeInWords(place) });
  return (
    <Fieldset legend={`Rows${at}`} mt="xs" p="xs">
      <Text size="xs" c="dimmed">
        {destination
          ? `${destination} gets everything that the stream's rules let pass, unless you give it rules of its own.`
          : "All rows and changes of a table are replicated, unless you add rules."}
      </Text>
      <Stack gap={6} mt={6}>
        {ruled.map((own) => (
          <Group key={keyOf(own)} gap="xs" wrap="nowrap">
            <Button
              size="compact-sm"
              variant="default"
              leftSection={<IconPencil size={13} aria-hidden />}
              aria-label={`Rules of ${placeInWords(own)}${at}`}
              onClick={() => setEdited(own)}
            >
              Rules
            </Button>
            <Text size="sm" style={{ overflowWrap: "anywhere" }}>
              {placeInWords(own)}:{" "}
              <Text span c="dimmed">
                {summary(own)}
              </Text>
            </Text>
          </Group>
        ))}
        {(wide.length > 0 || single.length > 0) && (
          <Select
            data-autofocus
            openOnFocus={false}
            aria-label={`Add rules${at}`}
            placeholder="Add rules"
            searchable
            limit={100}
            maw={320}
            data={[
              { group: "Several tables", items: wide.map(asOption) },
              { group: "One table", items: single.map(asOption) },
            ].filter(({ items }) => items.length > 0)}
            value={null}
            onChange={(chosen) =>
              setEdited([...wide, ...single].find((place) => keyOf(place) === chosen) ?? null)
            }
          />
        )}
      </Stack>
      <Modal
        opened={edited !== null}
        onClose={() => setEdited(null)}
        title={edited ? `Rules of ${placeInWords(edited)}${at}` : ""}
        size="xl"
      >
        {edited && (
          <RowRulesEditor
            sourceId={sourceId}
            captureEngineId={captureEngineId}
            stream={stream ?? null}
            place={edited}
            rules={rules}
            tables={tables}
            onClose={() => setEdited(null)}
            onSave={(own) => {
              onChange(withRowRules(rules, edited, own));
              setEdited(null);
            }}
          />
        )}
      </Modal>
    </Fieldset>
  );
}
