import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import classes from "./form-buttons.module.css";

interface FormButtonsProps {
  onCancel: () => void;
  /** Label of the submitting button. */
  children: ReactNode;
  loading?: boolean;
  disabled?: boolean;
  color?: string;
}

/** The end of a form in a dialogue: the way out, and the button that submits it. */
export function FormButtons({ onCancel, children, ...submit }: FormButtonsProps) {
  return (
    <div className={classes.buttons}>
      <Button variant="default" onClick={onCancel}>
        Cancel
      </Button>
      <Button type="submit" {...submit}>
        {children}
      </Button>
    </div>
  );
}
