import { ActionIcon, Tooltip, useMantineColorScheme } from "@mantine/core";
import { IconDeviceDesktop, IconMoon, IconSun } from "@tabler/icons-react";

const next = { auto: "light", light: "dark", dark: "auto" } as const;
const icons = { auto: IconDeviceDesktop, light: IconSun, dark: IconMoon } as const;
const words = { auto: "system", light: "light", dark: "dark" } as const;

export function ColorSchemeToggle() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const Icon = icons[colorScheme];
  const label = `Colours: ${words[colorScheme]}. Switch to ${words[next[colorScheme]]}`;
  return (
    <Tooltip label={label}>
      <ActionIcon aria-label={label} onClick={() => setColorScheme(next[colorScheme])} size={30}>
        <Icon size={17} stroke={1.7} aria-hidden />
      </ActionIcon>
    </Tooltip>
  );
}
