import { Button, Group, Stack, Text } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import { CopyBlock } from "@/ui/copy-block";

interface RecoveryCodesProps {
  codes: string[];
  onDone: () => void;
}

/** Shown this once. */
export function RecoveryCodes({ codes, onDone }: RecoveryCodesProps) {
  const text = codes.join("\n");
  return (
    <Stack gap="sm">
      <Text size="sm">
        Keep these recovery codes away from the device. Each one logs you in once when you have no code from
        the app. They are not shown again: only their hashes are stored.
      </Text>
      <CopyBlock text={text} label="Recovery codes" copyLabel="Copy codes" />
      <Group justify="space-between">
        <Button
          component="a"
          variant="default"
          href={`data:text/plain;charset=utf-8,${encodeURIComponent(`${text}\n`)}`}
          download="thalweg-recovery-codes.txt"
          leftSection={<IconDownload size={14} aria-hidden />}
        >
          Download
        </Button>
        <Button onClick={onDone}>I have saved them</Button>
      </Group>
    </Stack>
  );
}
