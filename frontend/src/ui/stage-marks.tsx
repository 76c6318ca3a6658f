// An analysis's marks on a stage of a path: that it limits the path, or which stage holds it back.
import { IconArrowBackUp, IconFlag } from "@tabler/icons-react";
import classes from "./stage-marks.module.css";

export function BottleneckMark() {
  return (
    <span className={classes.mark}>
      <IconFlag size={11} aria-hidden />
      Bottleneck
    </span>
  );
}

export function HeldBackBy({ stage }: { stage: string }) {
  return (
    <span className={classes.held}>
      <IconArrowBackUp size={14} aria-hidden style={{ flex: "none" }} />
      Held back by {stage.toLowerCase()}
    </span>
  );
}
