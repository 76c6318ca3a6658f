import { Badge, Tooltip } from "@mantine/core";
import {
  IconAlertTriangle,
  IconCircleCheck,
  IconCircleDashed,
  IconCircleX,
  IconProgress,
} from "@tabler/icons-react";
import {
  type HealthLevel,
  healthInWords,
  type ObservedStatus,
  type ShownState,
  type StateInWords,
  stateInWords,
  type Tone,
} from "@/lib/states";

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

interface ToneBadgeProps {
  state: StateInWords;
  compact?: boolean;
  /** Long states break into lines instead of asking for room: in narrow cards. */
  wrap?: boolean;
}

const wrapped = {
  root: { height: "auto", maxWidth: "100%", paddingBlock: 2 },
  label: { whiteSpace: "normal", lineHeight: 1.25 },
} as const;

export function ToneBadge({ state, compact = false, wrap = false }: ToneBadgeProps) {
  const colours = {
    background: `var(--tone-${state.tone}-soft)`,
    border: "1px solid transparent",
    color: `var(--tone-${state.tone})`,
  };
  return (
    <Tooltip label={state.definition} disabled={!state.definition}>
      <Badge
        size={compact ? "sm" : "md"}
        leftSection={<ToneIcon tone={state.tone} size={compact ? 12 : 14} />}
        styles={
          wrap
            ? { root: { ...colours, ...wrapped.root }, label: wrapped.label }
            : { root: { ...colours, minWidth: "max-content" } }
        }
      >
        {state.label}
      </Badge>
    </Tooltip>
  );
}

interface StateBadgeProps extends Omit<ToneBadgeProps, "state"> {
  state: string | null | undefined;
}

export function StateBadge({ state, ...rest }: StateBadgeProps) {
  return <ToneBadge state={stateInWords(state)} {...rest} />;
}

interface HealthBadgeProps {
  level: HealthLevel;
  status?: ObservedStatus;
  state?: ShownState;
}

export function HealthBadge({ level, status, state }: HealthBadgeProps) {
  return <ToneBadge state={healthInWords(level, status, state)} />;
}
