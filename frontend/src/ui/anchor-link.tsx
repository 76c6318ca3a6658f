import { Anchor, type AnchorProps } from "@mantine/core";
import { createLink } from "@tanstack/react-router";
import type { AnchorHTMLAttributes, Ref } from "react";

type BaseProps = AnchorProps &
  Omit<AnchorHTMLAttributes<HTMLAnchorElement>, keyof AnchorProps> & { ref?: Ref<HTMLAnchorElement> };

function Base(props: BaseProps) {
  return <Anchor {...props} />;
}

/** A link to a page of the console, with its parameters checked by the type of the router. */
export const AnchorLink = createLink(Base);
