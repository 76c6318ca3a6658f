import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { previewQuery } from "@/api/streams";
import type { TablePreview, TableRules } from "@/api/types";
import { completeRules } from "./matching";

const TYPING_PAUSE_MS = 300;

/** The tables that the rules match, requested again a moment after the last key stroke. */
export function usePreview(sourceId: string | null, rules: TableRules) {
  const [settled] = useDebouncedValue(rules, TYPING_PAUSE_MS);
  const query = useQuery(
    previewQuery(sourceId ? { source_id: sourceId, rules: completeRules(settled) } : null),
  );
  return {
    ...query,
    data: ofRules(query.data, rules),
    isSettled: settled === rules && !query.isPlaceholderData && !query.isFetching,
  };
}

/** Answers that are kept from before speak of no pattern that is not there any more. */
function ofRules(preview: TablePreview | undefined, rules: TableRules): TablePreview | undefined {
  const include = completeRules(rules).include.map(({ schema, table }) => `${schema}.${table}`);
  if (!preview || include.length === 0) return undefined;
  return { ...preview, unmatched: preview.unmatched.filter((pattern) => include.includes(pattern)) };
}

export type PreviewQuery = ReturnType<typeof usePreview>;
