import { Anchor } from "@mantine/core";
import { IconHelpCircle } from "@tabler/icons-react";

/** The tab of the browser that shows the help, beside the console. */
export const HELP_TAB = "thalweg-help";

interface HelpLinkProps {
  /** A page below docs/, without its ending. */
  help: string;
  /** An entry of the page, such as a finding's code: the page opens there. */
  entry?: string;
  /** The topic of the page, for those who cannot see where the link stands: "the advisor". */
  about: string;
}

/** Leads to the guide that explains what the reader looks at. */
export function HelpLink({ help, entry, about }: HelpLinkProps) {
  return (
    <Anchor
      href={`/help/${help}.html${entry ? `#${entry}` : ""}`}
      target={HELP_TAB}
      size="xs"
      c="dimmed"
      aria-label={`Guide to ${about}`}
      style={{ display: "inline-flex", alignItems: "center", gap: 4, whiteSpace: "nowrap" }}
    >
      <IconHelpCircle size={15} stroke={1.7} aria-hidden />
      Guide
    </Anchor>
  );
}
