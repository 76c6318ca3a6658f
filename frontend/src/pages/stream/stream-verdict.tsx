import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { analysisQuery } from "@/api/advisor";
import type { Stream } from "@/api/types";
import { verdictOf } from "@/lib/verdict";

/** Over what a stream is judged unless its page's window is another. */
export const JUDGED_SECONDS = 10;

interface StreamVerdictProps {
  stream: Stream;
  /** The page's window: title and path are judged over the same. */
  seconds: number;
}

/** Health of the stream, in one sentence: the same that its path and its snapshots give. */
export function StreamVerdict({ stream, seconds }: StreamVerdictProps) {
  const { data } = useQuery(analysisQuery({ stream_id: stream.id, window_seconds: seconds }));
  return (
    <Text size="sm" role="status" aria-label="Health of the stream">
      {verdictOf(stream, data?.paths)}
    </Text>
  );
}
