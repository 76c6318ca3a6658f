import { SimpleGrid, Stack, Text } from "@mantine/core";
import { IconArrowRight, IconFlask2, IconRoute, IconStethoscope } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { labQuery } from "@/api/lab";
import { AnchorLink } from "@/ui/anchor-link";
import { Panel } from "@/ui/panel";

/** Beside the only stream, usually the demo: where to go from here. */
export function FirstSteps({ mayCreate }: { mayCreate: boolean }) {
  const hasLab = useQuery(labQuery).data?.available === true;
  return (
    <Panel title="Next steps">
      <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="lg">
        {mayCreate && (
          <Step icon={<IconRoute size={18} stroke={1.7} aria-hidden />} title="Replicate your own tables">
            <Text size="sm" c="dimmed">
              The wizard registers two databases, checks them, and shows what will happen before it does
              anything.
            </Text>
            <AnchorLink to="/streams/new" size="sm">
              Create your own stream <IconArrowRight size={13} aria-hidden />
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
