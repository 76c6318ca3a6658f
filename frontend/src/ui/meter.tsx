import { Box } from "@mantine/core";
import classes from "./meter.module.css";

interface MeterProps {
  label: string;
  /** 0..1, null while unknown. */
  share: number | null;
  text: string;
  tone?: "busy" | "good" | "warning" | "bad";
  role?: "meter" | "progressbar";
}

/** A filled bar for "this much of that". */
export function Meter({ label, share, text, tone = "busy", role = "meter" }: MeterProps) {
  const value = share === null ? null : Math.min(1, Math.max(0, share));
  const bar = { className: classes.track, "aria-label": label, "aria-valuetext": text };
  const range = { "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Math.round((value ?? 0) * 100) };
  return (
    <Box role={role} {...bar} {...range}>
      {value !== null && (
        <span
          className={classes.fill}
          style={{ width: `${value * 100}%`, background: `var(--tone-${tone})` }}
        />
      )}
    </Box>
  );
}
