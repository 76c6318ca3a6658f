import { Box, Button, CopyButton, Group, Text } from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";

interface CopyBlockProps {
  text: string;
  label: string;
  copyLabel?: string;
  /** The subject of the text, so that a screen reader can tell several blocks of one kind apart. */
  about?: string;
  maxHeight?: number;
}

/** Text to take elsewhere: SQL, a shell command, a token. `label` says what it is, also to a screen reader. */
export function CopyBlock({ text, label, copyLabel = "Copy", about, maxHeight = 260 }: CopyBlockProps) {
  return (
    <Box
      component="figure"
      m={0}
      style={{ border: "1px solid var(--border-subtle)", borderRadius: 4, minWidth: 0 }}
    >
      <Group
        justify="space-between"
        wrap="nowrap"
        px={10}
        py={4}
        style={{ background: "var(--surface-sunken)", borderBottom: "1px solid var(--border-subtle)" }}
      >
        <Text component="figcaption" size="xs" c="dimmed" style={{ overflowWrap: "anywhere" }}>
          {label}
        </Text>
        <CopyButton value={text} timeout={2000}>
          {({ copied, copy }) => (
            <Button
              size="compact-xs"
              variant="subtle"
              flex="none"
              onClick={copy}
              leftSection={copied ? <IconCheck size={13} aria-hidden /> : <IconCopy size={13} aria-hidden />}
            >
              {copied ? "Copied" : copyLabel}
            </Button>
          )}
        </CopyButton>
      </Group>
      <Box
        component="pre"
        m={0}
        p={10}
        tabIndex={0}
        role="region"
        aria-label={about ? `${label}: ${about}` : label}
        style={{
          fontFamily: "var(--mantine-font-family-monospace)",
          fontSize: 12,
          lineHeight: "18px",
          overflow: "auto",
          maxHeight,
          whiteSpace: "pre",
        }}
      >
        {text}
      </Box>
    </Box>
  );
}
