import { Button, type ButtonProps } from "@mantine/core";
import { createLink } from "@tanstack/react-router";
import type { AnchorHTMLAttributes, Ref } from "react";

type BaseProps = ButtonProps &
  Omit<AnchorHTMLAttributes<HTMLAnchorElement>, keyof ButtonProps> & { ref?: Ref<HTMLAnchorElement> };

function Base(props: BaseProps) {
  return <Button component="a" {...props} />;
}

/** A link to a page of the console that looks like a button, with its parameters checked as AnchorLink's are. */
export const ButtonLink = createLink(Base);
