import { Box, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { enginesQuery } from "@/api/operations";
import { versionQuery } from "@/api/version";
import { ToneIcon } from "@/ui/tone";
import { version as consoleVersion } from "../../../package.json";
import { type VersionMismatch, versionMismatch } from "./versions";

const CHECKED_EVERY_MS = 60_000;

/** The product's version; where its parts differ, which part has which version, and the cure. */
export function VersionNote() {
  const controlPlane = useQuery(versionQuery).data;
  const engines = useQuery({ ...enginesQuery, refetchInterval: CHECKED_EVERY_MS }).data;
  const mismatch = versionMismatch(consoleVersion, controlPlane, engines ?? []);
  return (
    <Box component="footer" mt="auto" px={18} py={12}>
      {mismatch ? (
        <Mismatch {...mismatch} />
      ) : (
        <Text size="xs" c="dimmed" className="numeric">
          Thalweg {controlPlane ?? consoleVersion}
        </Text>
      )}
    </Box>
  );
}

function Mismatch({ parts, cures }: VersionMismatch) {
  return (
    <Stack gap={4} role="status" aria-label="Versions">
      <Group gap={6} wrap="nowrap">
        <ToneIcon tone="warning" />
        <Text size="xs" fw={600}>
          Versions differ
        </Text>
      </Group>
      {parts.map(({ name, version }) => (
        <Text key={name} size="xs" className="numeric" style={{ overflowWrap: "anywhere" }}>
          {name}: {version}
        </Text>
      ))}
      {cures.map((cure) => (
        <Text key={cure} size="xs" c="dimmed">
          {cure}
        </Text>
      ))}
    </Stack>
  );
}
