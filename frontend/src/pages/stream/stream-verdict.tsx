import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { analysisQuery } from "@/api/advisor";
import type { Stream } from "@/api/types";
import { verdictOf } from "@/lib/verdict";

/** Over what the title's sentence is judged, as the path below it at first. */
export const JUDGED_SECONDS = 10;

/** Health of the stream, in one sentence: the same that its path and its snapshots give. */
export function StreamVerdict({ stream }: { stream: Stream }) {
  const { data } = useQuery(analysisQuery({ stream_id: stream.id, window_seconds: JUDGED_SECONDS }));
  return (
    <Text size="sm" role="status" aria-label="Health of the stream">
      {verdictOf(stream, data?.paths)}
    </Text>
  );
}
