import { Box, Group, Text, Title } from "@mantine/core";
import { type ReactNode, useEffect } from "react";
import classes from "./page-header.module.css";

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
    <div className={classes.header}>
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
      {actions && <div className={classes.actions}>{actions}</div>}
    </div>
  );
}
