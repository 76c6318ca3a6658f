import { Box, Center, Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";
import { BrandMark } from "@/ui/brand-mark";

interface EntranceProps {
  title: string;
  subtitle: string;
  children: ReactNode;
}

/** The frame of what stands before the console. */
export function Entrance({ title, subtitle, children }: EntranceProps) {
  return (
    <Center component="main" mih="100vh" p="md">
      <Box w={380} maw="100%">
        <Stack align="center" gap={6} mb="lg">
          <BrandMark size={40} />
          <Title order={1} ta="center">
            {title}
          </Title>
          <Text size="sm" c="dimmed" ta="center">
            {subtitle}
          </Text>
        </Stack>
        {children}
      </Box>
    </Center>
  );
}
