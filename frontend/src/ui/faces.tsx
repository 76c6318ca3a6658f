// The faces of a view that has no data to show: loading, empty.
import { Box, Center, Group, Skeleton, Stack, Text, Title, VisuallyHidden } from "@mantine/core";
import type { ReactNode } from "react";

export function Loading({ rows = 4, label = "Loading" }: { rows?: number; label?: string }) {
  return (
    <Stack gap="xs" p="sm" role="status">
      <VisuallyHidden>{label}…</VisuallyHidden>
      {Array.from({ length: rows }, (_, row) => `row-${row}`).map((row) => (
        <Skeleton key={row} height={22} radius="sm" />
      ))}
    </Stack>
  );
}

interface EmptyProps {
  icon?: ReactNode;
  title: string;
  /** Why there is nothing, or what to do. */
  children: ReactNode;
  actions?: ReactNode;
}

export function Empty({ icon, title, children, actions }: EmptyProps) {
  return (
    <Center py={48} px="lg">
      <Stack align="center" gap="xs" maw={460}>
        {icon && (
          <Box c="dimmed" aria-hidden>
            {icon}
          </Box>
        )}
        <Title order={2} ta="center">
          {title}
        </Title>
        <Text component="div" c="dimmed" ta="center" size="sm">
          {children}
        </Text>
        {actions && <Group mt="xs">{actions}</Group>}
      </Stack>
    </Center>
  );
}
