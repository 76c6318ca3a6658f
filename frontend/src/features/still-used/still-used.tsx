import { Button, List, Modal, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { overviewQuery } from "@/api/streams";
import { counted } from "@/lib/format";
import { AnchorLink } from "@/ui/anchor-link";

interface StillUsedProps {
  title: string;
  name: string;
  /** Ids of the streams, and as what each of them uses it. */
  uses: { streamId: string; as?: string }[];
  onClose: () => void;
  /** The way to free it. */
  children: ReactNode;
}

/** In place of a confirmation: what streams use cannot be deleted. */
export function StillUsed({ title, name, uses, onClose, children }: StillUsedProps) {
  const streams = useQuery(overviewQuery).data?.streams ?? [];
  const nameOf = (id: string) => streams.find((stream) => stream.id === id)?.name ?? id;
  const ids = [...new Set(uses.map(({ streamId }) => streamId))];
  const as = (id: string) =>
    uses.flatMap((use) => (use.streamId === id && use.as ? [use.as] : [])).join(" and ");
  return (
    <Modal opened onClose={onClose} title={title} size="lg">
      <Stack gap="sm">
        <Text size="sm">
          {name} cannot be deleted: {counted(ids.length, "stream")} {ids.length === 1 ? "uses" : "use"} it.
        </Text>
        <List size="sm" spacing={4}>
          {ids.map((id) => (
            <List.Item key={id}>
              <AnchorLink
                to="/streams/$streamId"
                params={{ streamId: id }}
                size="sm"
                style={{ overflowWrap: "anywhere" }}
              >
                {nameOf(id)}
              </AnchorLink>
              {as(id) && ` (${as(id)})`}
            </List.Item>
          ))}
        </List>
        <Text size="sm">{children}</Text>
        <Button variant="default" onClick={onClose} style={{ alignSelf: "flex-end" }}>
          Close
        </Button>
      </Stack>
    </Modal>
  );
}
