import { Badge, Tooltip } from "@mantine/core";
import {
  IconAlertTriangle,
  IconCircleCheck,
  IconCircleDashed,
  IconCircleX,
  IconProgress,
} from "@tabler/icons-react";
import { healthInWords, type StateInWords, stateInWords, type Tone } from "@/lib/states";

const icons = {
  good: IconCircleCheck,
  busy: IconProgress,
  quiet: IconCircleDashed,
  warning: IconAlertTriangle,
  bad: IconCircleX,
} as const;

export function ToneIcon({ tone, size = 16 }: { tone: Tone; size?: number }) {
  const Icon = icons[tone];
  return <Icon size={size} stroke={2} color={`var(--tone-${tone})`} aria-hidden style={{ flex: "none" }} />;
}

interface StateBadgeProps {
  state: StateInWords;
  /** Shorter text than the state's label, when the column says the rest. */
  compact?: boolean;
}

export function ToneBadge({ state, compact = false }: StateBadgeProps) {
  return (
    <Tooltip label={state.definition} disabled={!state.definition}>
      <Badge
        size={compact ? "sm" : "md"}
        leftSection={<ToneIcon tone={state.tone} size={compact ? 12 : 14} />}
        styles={{
          root: {
            background: `var(--tone-${state.tone}-soft)`,
            border: "1px solid transparent",
            color: `var(--tone-${state.tone})`,
            maxWidth: "100%",
          },
          label: { overflow: "hidden", textOverflow: "ellipsis" },
        }}
      >
        {state.label}
      </Badge>
    </Tooltip>
  );
}

export function StateBadge({ state, compact }: { state: string | null | undefined; compact?: boolean }) {
  return <ToneBadge state={stateInWords(state)} compact={compact} />;
}

export function HealthBadge({ level }: { level: string | null | undefined }) {
  return <ToneBadge state={healthInWords(level)} />;
}
