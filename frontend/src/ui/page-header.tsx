import { Box, Group, Text, Title } from "@mantine/core";
import { type ReactNode, useEffect } from "react";

interface PageHeaderProps {
  title: string;
  description?: ReactNode;
  /** Stands beside the title: badges. */
  beside?: ReactNode;
  actions?: ReactNode;
}

export function PageHeader({ title, description, beside, actions }: PageHeaderProps) {
  useEffect(() => {
    document.title = `${title} · Thalweg`;
  }, [title]);
  return (
    <Group justify="space-between" align="flex-start" wrap="nowrap" mb="sm" gap="lg">
      <Box miw={0}>
        <Group gap="sm">
          <Title order={1}>{title}</Title>
          {beside}
        </Group>
        {description && (
          <Text component="div" c="dimmed" size="sm" mt={2}>
            {description}
          </Text>
        )}
      </Box>
      {actions && (
        <Group gap="xs" wrap="nowrap" style={{ flex: "none" }}>
          {actions}
        </Group>
      )}
    </Group>
  );
}
