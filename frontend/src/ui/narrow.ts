import { useMediaQuery } from "@mantine/hooks";

/** Below this a page is a phone's: one column, cards in place of rows. The style sheets name the same width. */
const NARROW = "(max-width: 47.99em)";

export function useNarrow(): boolean {
  return useMediaQuery(NARROW, false, { getInitialValueInEffect: false });
}
