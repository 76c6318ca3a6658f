import { Button, Stack } from "@mantine/core";
import { IconRefresh } from "@tabler/icons-react";
import type { UseQueryResult } from "@tanstack/react-query";
import { problemInWords } from "@/api/problem-in-words";
import type { Check, Database, Engine, Preflight, StreamCreate, StreamParameter } from "@/api/types";
import { ParameterFields } from "@/features/parameters/parameter-fields";
import { defaults } from "@/features/parameters/parameter-values";
import { CheckList } from "@/features/preflight/check-list";
import type { MaskKey } from "@/features/table-rules/mask-key-field";
import type { PreviewQuery } from "@/features/table-rules/use-preview";
import { Panel } from "@/ui/panel";
import { QueryFaces } from "@/ui/query-faces";
import { CaptureChoice } from "./capture-choice";
import { DatabaseStep, DestinationsStep } from "./database-step";
import { EngineChoice } from "./engine-choice";
import { ReviewStep } from "./review-step";
import { TablesStep } from "./tables-step";
import { applyEngineId, type Step, type WizardState, withSource } from "./wizard-state";

interface WizardStepProps {
  step: Step;
  state: WizardState;
  onChange: (change: (state: WizardState) => WizardState) => void;
  databases: Database[];
  engines: Engine[];
  definitions: StreamParameter[];
  preview: PreviewQuery;
  preflight: UseQueryResult<Preflight>;
  body: StreamCreate;
  /** Checks that the wizard has shown. */
  seen: Check[];
  maskKey: MaskKey;
}

export function WizardStep(props: WizardStepProps) {
  const { step, state, onChange, databases, engines, definitions, preview, preflight, body, seen, maskKey } =
    props;
  const find = (id: string | null) => databases.find((database) => database.id === id);
  const destinations = state.destinationIds
    .map((id) => find(id))
    .filter((database): database is Database => database !== undefined);
  const names = Object.fromEntries(databases.map(({ id, name }) => [id, name]));
  const suggested = `${find(state.sourceId)?.name ?? ""} to ${destinations.map(({ name }) => name).join(", ")}`;

  switch (step) {
    case "source":
      return (
        <Stack gap="md">
          <DatabaseStep
            label="Source database"
            databases={databases}
            value={state.sourceId}
            onChange={(id) => onChange((now) => withSource(now, id))}
          />
          <CaptureChoice
            value={state.captureKind}
            onChange={(captureKind) => onChange((now) => ({ ...now, captureKind }))}
          />
        </Stack>
      );
    case "destination":
      return (
        <Stack gap="md">
          <DestinationsStep
            databases={databases}
            taken={state.sourceId}
            value={state.destinationIds}
            onChange={(destinationIds) => onChange((now) => ({ ...now, destinationIds }))}
          />
          <EngineChoice
            engines={engines}
            engineId={state.engineId}
            destinations={destinations}
            applyEngineIds={state.applyEngineIds}
            onChange={(engineId, applyEngineIds) => onChange((now) => ({ ...now, engineId, applyEngineIds }))}
          />
        </Stack>
      );
    case "tables":
      return (
        <TablesStep
          sourceId={state.sourceId ?? ""}
          captureEngineId={state.engineId}
          rules={state.rules}
          onChange={(rules) => onChange((now) => ({ ...now, rules }))}
          maskKey={maskKey}
          preview={preview}
          destinations={destinations}
          destinationRules={state.destinationRules}
          onDestinationRules={(databaseId, own) =>
            onChange((now) => ({
              ...now,
              destinationRules: { ...now.destinationRules, [databaseId]: own },
            }))
          }
        />
      );
    case "preflight":
      return (
        <Panel
          title="Preflight"
          aside={
            <Button
              variant="default"
              leftSection={<IconRefresh size={14} aria-hidden />}
              loading={preflight.isFetching}
              onClick={() => preflight.refetch()}
            >
              Run again
            </Button>
          }
        >
          <QueryFaces query={preflight} inWords={problemInWords} loadingLabel="Checking the databases">
            {(known) => (
              <CheckList
                checks={known.checks}
                databases={names}
                consents={{
                  accepted: state.accepted,
                  onChange: (accepted) => onChange((now) => ({ ...now, accepted })),
                }}
              />
            )}
          </QueryFaces>
        </Panel>
      );
    case "parameters":
      return (
        <Panel title="Parameters">
          <ParameterFields
            definitions={definitions}
            values={{ ...defaults(definitions), ...state.parameters }}
            base={defaults(definitions)}
            onChange={(name, value) =>
              onChange((now) => ({ ...now, parameters: { ...now.parameters, [name]: value } }))
            }
          />
        </Panel>
      );
    case "review":
      return (
        <ReviewStep
          body={body}
          source={find(state.sourceId)}
          destinations={destinations.map((database) => ({
            database,
            engine: engines.find(({ id }) => id === applyEngineId(state, database.id)),
          }))}
          engine={engines.find((engine) => engine.id === state.engineId) ?? engines[0]}
          preview={preview.data}
          seen={seen}
          suggestedName={suggested}
          onName={(name) => onChange((now) => ({ ...now, name }))}
          onStart={(start) => onChange((now) => ({ ...now, start }))}
        />
      );
  }
}
