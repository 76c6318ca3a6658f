import { SimpleGrid, Stack, Text } from "@mantine/core";
import { IconArrowRight, IconDatabase, IconFlask2, IconRoute, IconStethoscope } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { databasesQuery } from "@/api/databases";
import { labQuery } from "@/api/lab";
import { AnchorLink } from "@/ui/anchor-link";
import { HelpLink } from "@/ui/help-link";
import { Panel } from "@/ui/panel";

interface FirstStepsProps {
  mayCreate: boolean;
  /** Only the demo's stream is there, or none: the first one needs its databases. */
  hasStream: boolean;
}

/** Words on the wizard and its databases, by whether there are any. */
export function wizardInWords(hasDatabases: boolean): string {
  const first = hasDatabases
    ? "The wizard takes databases that are registered, or registers others,"
    : "The wizard registers two databases,";
  return `${first} checks them, and shows what will happen before it does anything.`;
}

/** Where to go from here while there is no stream, or one, which usually is the demo's. */
export function FirstSteps({ mayCreate, hasStream }: FirstStepsProps) {
  const hasLab = useQuery(labQuery).data?.available === true;
  const databases = useQuery(databasesQuery).data;
  return (
    <Panel title="Next steps">
      <SimpleGrid cols={{ base: 1, sm: hasStream ? 3 : 2 }} spacing="lg">
        {mayCreate && !hasStream && databases && databases.length < 2 && (
          <AddDatabases registered={databases[0]?.name} />
        )}
        {mayCreate && (
          <Step icon={<IconRoute size={18} stroke={1.7} aria-hidden />} title="Replicate your own tables">
            <Text size="sm" c="dimmed">
              {wizardInWords(databases?.length !== 0)}
            </Text>
            <AnchorLink to="/streams/new" size="sm">
              {hasStream ? "Create your own stream" : "Create a stream"}{" "}
              <IconArrowRight size={13} aria-hidden />
            </AnchorLink>
          </Step>
        )}
        <Step icon={<IconStethoscope size={18} stroke={1.7} aria-hidden />} title="Ask the advisor">
          <Text size="sm" c="dimmed">
            The advisor names the component that limits a path, the reason, and the change that cures it.
          </Text>
          <AnchorLink to="/advisor" size="sm">
            Open the advisor <IconArrowRight size={13} aria-hidden />
          </AnchorLink>
          {!hasStream && <HelpLink help="guides/advisor" about="the advisor" />}
        </Step>
        {hasLab && (
          <Step icon={<IconFlask2 size={18} stroke={1.7} aria-hidden />} title="Make it slow on purpose">
            <Text size="sm" c="dimmed">
              The lab gives the demo more load or a real fault, and the advisor explains it: a five-minute
              tour.
            </Text>
            <AnchorLink to="/lab" size="sm">
              Open the lab <IconArrowRight size={13} aria-hidden />
            </AnchorLink>
          </Step>
        )}
      </SimpleGrid>
    </Panel>
  );
}

/** A stream needs two: `registered` is the only one that there is. */
function AddDatabases({ registered }: { registered: string | undefined }) {
  return (
    <Step
      icon={<IconDatabase size={18} stroke={1.7} aria-hidden />}
      title={registered ? "Add another database" : "Add your databases"}
    >
      <Text size="sm" c="dimmed">
        {registered
          ? `${registered} is registered: a stream needs a source and a destination.`
          : "Register the source and the destination."}{" "}
        The connection is tested, and what is missing comes with its cure.
      </Text>
      <AnchorLink to="/databases" size="sm">
        {registered ? "Add a database" : "Add databases"} <IconArrowRight size={13} aria-hidden />
      </AnchorLink>
    </Step>
  );
}

function Step({ icon, title, children }: { icon: ReactNode; title: string; children: ReactNode }) {
  return (
    <Stack gap={4}>
      <Text size="sm" fw={600} style={{ display: "flex", alignItems: "center", gap: 6 }}>
        {icon}
        {title}
      </Text>
      {children}
    </Stack>
  );
}
