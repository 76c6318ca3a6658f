import { Box, Group, Title } from "@mantine/core";
import { type ReactNode, useId } from "react";
import classes from "./panel.module.css";

interface PanelProps {
  title?: ReactNode;
  /** Right of the title: badges, switches, buttons. */
  aside?: ReactNode;
  children: ReactNode;
  /** Content touches the border: tables. */
  flush?: boolean;
}

export function Panel({ title, aside, children, flush = false }: PanelProps) {
  const id = useId();
  return (
    <Box component="section" className={classes.panel} aria-labelledby={title ? id : undefined}>
      {(title || aside) && (
        <Group justify="space-between" className={classes.header}>
          <Title order={2} id={id}>
            {title}
          </Title>
          <Group gap="xs">{aside}</Group>
        </Group>
      )}
      <Box className={flush ? classes.flush : classes.body}>{children}</Box>
    </Box>
  );
}
