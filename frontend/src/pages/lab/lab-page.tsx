import { Button, Grid, Stack, Text } from "@mantine/core";
import { IconArrowBackUp, IconFlask2 } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { labQuery, useLabChange } from "@/api/lab";
import { problemInWords } from "@/api/problem-in-words";
import { sessionQuery } from "@/api/session";
import type { Lab } from "@/api/types";
import { CauseCard } from "@/features/lab/cause-card";
import { LoadSlider } from "@/features/lab/load-slider";
import { covers } from "@/lib/session-role";
import { Empty } from "@/ui/faces";
import { HelpLink } from "@/ui/help-link";
import { PageHeader } from "@/ui/page-header";
import { Panel } from "@/ui/panel";
import { ProblemAlert } from "@/ui/problem-alert";
import { QueryFaces } from "@/ui/query-faces";
import { RestCallButton } from "@/ui/rest-call";
import { LabTour } from "./lab-tour";
import { LabVerdict } from "./lab-verdict";

/** Load and real trouble for the demo, beside what the advisor says of it. */
export function LabPage() {
  const lab = useQuery(labQuery);
  const change = useLabChange();
  const mayAct = covers(useQuery(sessionQuery).data?.user.role, "operator");
  const busy = [lab.data?.load, ...(lab.data?.causes ?? [])].some(
    (action) => action && action.state !== "off",
  );
  return (
    <>
      <PageHeader
        title="Lab"
        beside={<HelpLink help="guides/lab" about="the lab" />}
        description="Make the demo busy or slow, with real causes, and see whether the advisor names them."
        actions={
          <>
            <RestCallButton
              calls={[
                { method: "GET", path: "/api/v1/lab" },
                { method: "PUT", path: "/api/v1/lab/load", body: { rate: 500 } },
                { method: "POST", path: "/api/v1/lab/causes/trigger:start" },
                { method: "POST", path: "/api/v1/lab:reset" },
              ]}
            />
            {lab.data?.available && (
              <Button
                variant="default"
                disabled={!mayAct || !busy}
                leftSection={<IconArrowBackUp size={15} aria-hidden />}
                onClick={() => change.mutate("reset")}
              >
                All back to normal
              </Button>
            )}
          </>
        }
      />
      <QueryFaces query={lab} inWords={problemInWords} loadingLabel="Loading the lab">
        {(known) =>
          known.available ? (
            <Stack gap="sm">
              {change.isError && <ProblemAlert problem={problemInWords(change.error)} />}
              {!mayAct && <Text size="sm">Your role can only read: an operator can make changes here.</Text>}
              <Bench lab={known} change={change} mayAct={mayAct} />
            </Stack>
          ) : (
            <Panel>
              <Empty icon={<IconFlask2 size={40} stroke={1.5} />} title="There is no lab here">
                {known.why} {known.cure}
              </Empty>
            </Panel>
          )
        }
      </QueryFaces>
    </>
  );
}

interface BenchProps {
  lab: Lab;
  change: ReturnType<typeof useLabChange>;
  mayAct: boolean;
}

function Bench({ lab: { stream, load, causes }, change, mayAct }: BenchProps) {
  if (!stream || !load) return null;
  const disabled = !mayAct || change.isPending;
  return (
    <Grid gap="sm">
      <Grid.Col span={{ base: 12, lg: 5 }}>
        <Stack gap="sm">
          <LabTour />
          <Panel title={`Load at ${stream.source}`}>
            <LoadSlider load={load} disabled={!mayAct} onRate={(rate) => change.mutate({ rate })} />
          </Panel>
          <Panel title={`Make it slow at ${stream.destination}`}>
            <Stack gap="sm">
              {causes.map((cause) => (
                <CauseCard
                  key={cause.name}
                  cause={cause}
                  at={stream.destination}
                  disabled={disabled}
                  onStart={(delay_ms) => change.mutate({ start: cause.name, delay_ms })}
                  onStop={() => change.mutate({ stop: cause.name })}
                />
              ))}
              <Text size="xs" c="dimmed">
                Only one can be on: switching one on ends the other.
              </Text>
            </Stack>
          </Panel>
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, lg: 7 }}>
        <LabVerdict stream={stream} />
      </Grid.Col>
    </Grid>
  );
}
