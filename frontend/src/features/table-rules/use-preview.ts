import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { previewQuery } from "@/api/streams";
import type { TableRules } from "@/api/types";
import { completeRules } from "./matching";

const TYPING_PAUSE_MS = 300;

/** The tables that the rules match, requested again a moment after the last key stroke. */
export function usePreview(sourceId: string | null, rules: TableRules) {
  const [settled] = useDebouncedValue(rules, TYPING_PAUSE_MS);
  const query = useQuery(
    previewQuery(sourceId ? { source_id: sourceId, rules: completeRules(settled) } : null),
  );
  return { ...query, isSettled: settled === rules && !query.isPlaceholderData && !query.isFetching };
}

export type PreviewQuery = ReturnType<typeof usePreview>;
