import { Grid } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { tablesQuery } from "@/api/databases";
import { problemInWords } from "@/api/problem-in-words";
import type { Database, ScopedRules, TableRules } from "@/api/types";
import { InsertsOnly } from "@/features/table-rules/inserts-only";
import type { MaskKey } from "@/features/table-rules/mask-key-field";
import { completeRules, isSelected, toggled } from "@/features/table-rules/matching";
import { NamesThere } from "@/features/table-rules/names-there";
import { RowRules } from "@/features/table-rules/row-rules";
import { RuleEditor } from "@/features/table-rules/rule-editor";
import { RulePreview } from "@/features/table-rules/rule-preview";
import { SchemaChips } from "@/features/table-rules/schema-chips";
import { SourceTables } from "@/features/table-rules/source-tables";
import { Transformations } from "@/features/table-rules/transformations";
import type { PreviewQuery } from "@/features/table-rules/use-preview";
import { Panel } from "@/ui/panel";
import { ProblemAlert } from "@/ui/problem-alert";
import { QueryFaces } from "@/ui/query-faces";
import { untouchedRules } from "./wizard-state";

interface TablesStepProps {
  sourceId: string;
  captureEngineId: string | null;
  rules: TableRules;
  onChange: (rules: TableRules) => void;
  maskKey: MaskKey;
  preview: PreviewQuery;
  destinations: Database[];
  /** By the destination's database: the rules of its own. */
  destinationRules: Record<string, ScopedRules[]>;
  onDestinationRules: (databaseId: string, rules: ScopedRules[]) => void;
}

const name = ({ schema, table }: { schema: string; table: string }) => `${schema}.${table}`;

export function TablesStep(props: TablesStepProps) {
  const { sourceId, captureEngineId, rules, onChange, maskKey, preview } = props;
  const { destinations, destinationRules, onDestinationRules } = props;
  const tables = useQuery({ ...tablesQuery(sourceId), placeholderData: keepPreviousData });
  const fresh = tables.isPlaceholderData ? undefined : tables.data;
  useEffect(() => {
    const initial = fresh ? untouchedRules(rules, fresh) : rules;
    if (initial !== rules) onChange(initial);
  }, [fresh, rules, onChange]);
  const complete = completeRules(rules);
  // Only the preview knows which changes of a table the rules give up.
  const matched = new Map(preview.data?.tables.map((table) => [name(table), table]));
  return (
    <Grid gap="md">
      <Grid.Col span={{ base: 12, md: 4 }}>
        <Panel title="Table patterns">
          {tables.data && <SchemaChips tables={tables.data} rules={rules} onChange={onChange} />}
          <RuleEditor rules={rules} onChange={onChange} />
        </Panel>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 8 }}>
        <Panel flush title="Tables at the source">
          <div style={{ padding: "4px 14px" }}>
            {preview.error ? (
              <ProblemAlert problem={problemInWords(preview.error)} onRetry={() => preview.refetch()} />
            ) : (
              preview.data && (
                <>
                  <RulePreview preview={preview.data} updating={preview.isFetching} />
                  <InsertsOnly tables={preview.data.tables} rules={rules} onChange={onChange} />
                  <RowRules
                    sourceId={sourceId}
                    captureEngineId={captureEngineId}
                    tables={preview.data.tables}
                    rules={rules}
                    onChange={onChange}
                  />
                  <Transformations
                    sourceId={sourceId}
                    tables={preview.data.tables}
                    rules={rules}
                    onChange={onChange}
                    maskKey={maskKey}
                  />
                  <NamesThere tables={preview.data.tables} rules={rules} onChange={onChange} />
                  {destinations.map((database) => (
                    <RowRules
                      key={database.id}
                      sourceId={sourceId}
                      captureEngineId={captureEngineId}
                      tables={preview.data?.tables ?? []}
                      rules={{ ...rules, row_rules: destinationRules[database.id] ?? [] }}
                      onChange={({ row_rules }) => onDestinationRules(database.id, row_rules ?? [])}
                      destination={database.name}
                    />
                  ))}
                </>
              )
            )}
          </div>
          <QueryFaces query={tables} inWords={problemInWords} loadingLabel="Reading the catalogue">
            {(known) => (
              <SourceTables
                tables={known.map((table) => matched.get(name(table)) ?? table)}
                selection={{
                  isSelected: (table) => isSelected(complete, table),
                  onToggle: (table) => onChange(toggled(complete, table)),
                }}
              />
            )}
          </QueryFaces>
        </Panel>
      </Grid.Col>
    </Grid>
  );
}
