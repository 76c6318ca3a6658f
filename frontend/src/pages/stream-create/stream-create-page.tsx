import { Button, Group, Stack, Stepper, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { databasesQuery } from "@/api/databases";
import { enginesQuery } from "@/api/operations";
import { problemInWords } from "@/api/problem-in-words";
import { parametersQuery, preflightQuery, useCreateStream } from "@/api/streams";
import type { Check, Database, Engine, StreamParameter } from "@/api/types";
import { isAccepted, isReady, refusedChecks } from "@/features/preflight/checks";
import { Refusal } from "@/features/preflight/refusal";
import { faultOfMaskKey, hidingMaskKey, maskKeyOf } from "@/features/table-rules/mask-key";
import { usePreview } from "@/features/table-rules/use-preview";
import { PageHeader } from "@/ui/page-header";
import { QueryFaces } from "@/ui/query-faces";
import { dropDraft, keepDraft, readDraft } from "./draft";
import {
  emptyWizard,
  furthestStep,
  stepFault,
  stepLabels,
  steps,
  toStreamCreate,
  type WizardFacts,
  type WizardState,
} from "./wizard-state";
import { WizardStep } from "./wizard-step";

export function StreamCreatePage() {
  const databases = useQuery(databasesQuery);
  const engines = useQuery(enginesQuery);
  const definitions = useQuery(parametersQuery);
  return (
    <>
      <PageHeader
        title="Create stream"
        description="Replicate tables from one database to another, or to several. Nothing changes anywhere before the last step."
      />
      <QueryFaces query={databases} inWords={problemInWords}>
        {(knownDatabases) => (
          <QueryFaces query={engines} inWords={problemInWords}>
            {(knownEngines) => (
              <QueryFaces query={definitions} inWords={problemInWords}>
                {(known) => <Wizard databases={knownDatabases} engines={knownEngines} definitions={known} />}
              </QueryFaces>
            )}
          </QueryFaces>
        )}
      </QueryFaces>
    </>
  );
}

interface WizardProps {
  databases: Database[];
  engines: Engine[];
  definitions: StreamParameter[];
}

function Wizard({ databases, engines, definitions }: WizardProps) {
  const [draft] = useState(() => readDraft(databases));
  const [state, setState] = useState<WizardState>(draft?.state ?? emptyWizard);
  const [active, setActive] = useState(draft?.active ?? 0);
  // Not in the draft, which the browser keeps.
  const [maskKey, setMaskKey] = useState("");
  const navigate = useNavigate();
  const create = useCreateStream();
  const panel = useRef<HTMLDivElement>(null);
  const step = steps[active] ?? "source";

  const preview = usePreview(state.sourceId, state.rules);
  const body = { ...toStreamCreate(state, definitions), ...maskKeyOf(state.rules, maskKey) };
  const preflight = useQuery({
    ...preflightQuery({
      source_id: body.source_id,
      ...(body.capture_engine_id ? { capture_engine_id: body.capture_engine_id } : {}),
      destinations: body.destinations,
      capture_kind: body.capture_kind,
      rules: body.rules,
      parameters: body.parameters ?? {},
    }),
    enabled: step === "preflight",
  });
  // The last answer counts after the step is left, until it is asked again with other answers.
  const preflightReady =
    preflight.isFetching || !preflight.data ? null : isReady(preflight.data.checks, state.accepted);
  const facts: WizardFacts = {
    engines,
    replicable: preview.isSettled ? (preview.data?.replicable ?? null) : null,
    preflightReady: active > steps.indexOf("preflight") ? true : preflightReady,
    definitions,
  };
  const keyFault = step === "tables" ? faultOfMaskKey(state.rules, maskKey) : null;
  const fault = stepFault(step, state, facts) ?? keyFault;
  // Accepted checks are shown to the end, also when other parameters ask for other checks.
  const [seen, setSeen] = useState<Check[]>([]);
  useEffect(() => {
    if (preflight.data) setSeen(preflight.data.checks);
  }, [preflight.data]);
  const refused = refusedChecks(create.error);

  const moved = useRef(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs when the step changes
  useEffect(() => {
    if (moved.current) {
      panel.current?.focus({ preventScroll: true });
      window.scrollTo({ top: 0 });
    }
    moved.current = true;
  }, [active]);

  useEffect(() => {
    if (state.sourceId) keepDraft({ state, active });
  }, [state, active]);

  /** Forgets the last refusal: the next attempt shows its own. */
  const go = (index: number) => {
    create.reset();
    setActive(index);
  };

  const startAfresh = () => {
    create.reset();
    dropDraft();
    setState(emptyWizard);
    setMaskKey("");
    setActive(0);
  };

  const submit = () =>
    create.mutate(body, {
      onSuccess: ({ stream_id }) => {
        dropDraft();
        return navigate({ to: "/streams/$streamId", params: { streamId: stream_id } });
      },
    });

  return (
    <Stack gap="md">
      <Stepper
        active={active}
        onStepClick={(index) => index <= Math.min(active, furthestStep(state, facts)) && go(index)}
        size="sm"
        iconSize={28}
      >
        {steps.map((name, index) => (
          <Stepper.Step
            key={name}
            label={stepLabels[name].label}
            description={stepLabels[name].description}
            allowStepSelect={index < active}
            aria-current={index === active ? "step" : undefined}
          />
        ))}
      </Stepper>
      <section
        ref={panel}
        tabIndex={-1}
        aria-label={`Step ${active + 1} of ${steps.length}: ${stepLabels[step].label}`}
        style={{ outline: "none" }}
      >
        <WizardStep
          step={step}
          state={state}
          onChange={setState}
          databases={databases}
          engines={engines}
          definitions={definitions}
          preview={preview}
          preflight={preflight}
          body={hidingMaskKey(body)}
          seen={[...seen, ...refused]}
          maskKey={{ value: maskKey, onChange: setMaskKey, isSet: false }}
        />
      </section>
      {create.isError && (
        <Refusal
          error={create.error}
          databases={Object.fromEntries(databases.map(({ id, name }) => [id, name]))}
          consents={{
            accepted: state.accepted,
            onChange: (accepted) => setState((now) => ({ ...now, accepted })),
          }}
        />
      )}
      <Group justify="space-between">
        <Group gap="xs">
          <Button component={Link} to="/" variant="subtle" color="gray" onClick={dropDraft}>
            Cancel
          </Button>
          {state.sourceId && (
            <Button variant="subtle" color="gray" onClick={startAfresh}>
              Start over
            </Button>
          )}
          {draft && (
            <Text size="sm" c="dimmed">
              Your draft, as you left it.
            </Text>
          )}
        </Group>
        <Group gap="sm">
          {fault && (
            <Text size="sm" c="dimmed" role="status">
              {fault}
            </Text>
          )}
          <Button variant="default" disabled={active === 0} onClick={() => go(active - 1)}>
            Back
          </Button>
          {step === "review" ? (
            <Button
              disabled={fault !== null || !isAccepted(refused, state.accepted)}
              loading={create.isPending}
              onClick={submit}
            >
              Create stream
            </Button>
          ) : (
            <Button disabled={fault !== null} onClick={() => go(active + 1)}>
              Next
            </Button>
          )}
        </Group>
      </Group>
    </Stack>
  );
}
