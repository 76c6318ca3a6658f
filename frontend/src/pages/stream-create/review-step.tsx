import { Box, Checkbox, Grid, Group, SegmentedControl, Stack, Text, TextInput } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import type { Check, Database, Engine, StreamCreate, TablePreview } from "@/api/types";
import { valueInWords } from "@/features/parameters/parameter-values";
import { AcceptedChecks, acceptedChecks } from "@/features/preflight/accepted-checks";
import { placeInWords } from "@/features/table-rules/rule-scopes";
import { stepInWords } from "@/features/table-rules/transformation-drafts";
import { asText, bytes, counted } from "@/lib/format";
import { captureInWords } from "@/lib/states";
import { estimatedRows } from "@/lib/sums";
import { yaml } from "@/lib/yaml";
import { CopyBlock } from "@/ui/copy-block";
import { Panel } from "@/ui/panel";
import { RestCall } from "@/ui/rest-call";

interface ReviewStepProps {
  body: StreamCreate;
  source: Database | undefined;
  /** `engine`: where it is another one that applies. */
  destinations: { database: Database; engine: Engine | undefined }[];
  engine: Engine | undefined;
  preview: TablePreview | undefined;
  seen: Check[];
  /** Used until the user writes a name. */
  suggestedName: string;
  onName: (name: string) => void;
  onStart: (start: boolean) => void;
}

const rule = ({ schema, table }: { schema: string; table?: string }) => `${schema}.${table ?? "*"}`;

export function ReviewStep(props: ReviewStepProps) {
  const { body, source, destinations, engine, preview, seen, suggestedName, onName, onStart } = props;
  const untouched = useRef(body.name === "");
  useEffect(() => {
    if (untouched.current) onName(suggestedName);
    untouched.current = false;
  }, [suggestedName, onName]);
  const parameters = Object.entries(body.parameters ?? {});
  const excluded = body.rules.exclude ?? [];
  const given = { checks: seen, accepted: body.accept ?? [] };
  const insertsOnly = body.rules.inserts_only ?? [];
  const ruled = body.rules.row_rules ?? [];
  const transformed = body.rules.transformations ?? [];
  return (
    <Grid gap="md">
      <Grid.Col span={{ base: 12, md: 5 }}>
        <Stack gap="sm">
          <Panel title="Stream">
            <Stack gap="sm">
              <TextInput
                label="Stream name"
                value={body.name}
                onChange={(event) => onName(event.currentTarget.value)}
                required
                withAsterisk={false}
                maxLength={100}
              />
              <Checkbox
                label="Start it immediately"
                checked={body.start ?? true}
                onChange={(event) => onStart(event.currentTarget.checked)}
              />
            </Stack>
          </Panel>
          <Panel title="What will happen">
            <Stack gap={7}>
              <Fact label="Source">{source?.name ?? "–"}</Fact>
              <Fact label="Captured by">{captureInWords(body.capture_kind)}</Fact>
              {destinations.map(({ database, engine: applies }) => (
                <Fact key={database.id} label="Destination">
                  {database.name}
                  {applies &&
                    `, applied by ${applies.name}, which is reached at ${applies.propagation_address}`}
                </Fact>
              ))}
              <Fact label={destinations.some(({ engine: applies }) => applies) ? "Captures" : "Engine"}>
                {engine?.name ?? "the only one"}
              </Fact>
              {destinations.length > 1 && (
                <Fact label="Fan-out">
                  The source is read once for all destinations. A destination that is away holds up neither
                  the others nor the source: its backlog is kept on the engine's disk.
                </Fact>
              )}
              <Fact label="Tables">
                {preview
                  ? `${counted(preview.replicable, "table")}, ${estimatedRows(preview.tables)}, ${asText(bytes(preview.bytes))}`
                  : "–"}
              </Fact>
              <Fact label="Include">{body.rules.include.map(rule).join(", ")}</Fact>
              {excluded.length > 0 && <Fact label="Exclude">{excluded.map(rule).join(", ")}</Fact>}
              {insertsOnly.length > 0 && (
                <Fact label="Inserts only">
                  {insertsOnly.map(rule).join(", ")}: updates and deletes stay at the source.
                </Fact>
              )}
              {ruled.length > 0 && (
                <Fact label="Rows by rules">
                  {ruled.map(placeInWords).join(", ")}: only some rows and changes.
                </Fact>
              )}
              {transformed.map((own) => (
                <Fact key={rule(own)} label={`Columns of ${rule(own)}`}>
                  {own.steps.map(stepInWords).join(", ")}
                </Fact>
              ))}
              {body.destinations.map(
                ({ database_id, row_rules }) =>
                  row_rules &&
                  row_rules.length > 0 && (
                    <Fact
                      key={database_id}
                      label={`At ${destinations.find(({ database }) => database.id === database_id)?.database.name}`}
                    >
                      {row_rules.map(placeInWords).join(", ")}: only some of these rows and changes.
                    </Fact>
                  ),
              )}
              {acceptedChecks(given).length > 0 && (
                <Fact label="Accepted">
                  <AcceptedChecks {...given} />
                </Fact>
              )}
              <Fact label="Parameters">
                {parameters.length === 0
                  ? "all at their defaults"
                  : parameters
                      .map(
                        ([name, value]) => `${name} = ${Array.isArray(value) ? valueInWords(value) : value}`,
                      )
                      .join(", ")}
              </Fact>
            </Stack>
          </Panel>
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 7 }}>
        <SameRequest body={body} />
      </Grid.Col>
    </Grid>
  );
}

/** For those who keep their streams in files or make them by a script. */
function SameRequest({ body }: { body: StreamCreate }) {
  const [form, setForm] = useState("rest");
  return (
    <Panel
      title={form === "rest" ? "The same by REST" : "The same as YAML"}
      aside={
        <SegmentedControl
          size="xs"
          aria-label="Form of the request"
          value={form}
          onChange={setForm}
          data={[
            { value: "rest", label: "REST" },
            { value: "yaml", label: "YAML" },
          ]}
        />
      }
    >
      {form === "rest" ? (
        <RestCall call={{ method: "POST", path: "/api/v1/streams", body }} maxHeight={520} />
      ) : (
        <Stack gap="xs">
          <CopyBlock text={yaml(body)} label="The request's body as YAML" maxHeight={520} />
          <CopyBlock
            text="thalweg streams create-from stream.yaml"
            label="Saved as stream.yaml, it is sent by"
          />
        </Stack>
      )}
    </Panel>
  );
}

function Fact({ label, children }: { label: string; children: React.ReactNode }) {
  return (
    <Group gap="sm" wrap="nowrap" align="flex-start">
      <Text size="sm" c="dimmed" w={92} style={{ flex: "none" }}>
        {label}
      </Text>
      <Box fz="sm" miw={0} style={{ overflowWrap: "anywhere" }}>
        {children}
      </Box>
    </Group>
  );
}
