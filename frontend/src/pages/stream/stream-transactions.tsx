import { useQuery } from "@tanstack/react-query";
import { problemInWords } from "@/api/problem-in-words";
import { transactionsQuery } from "@/api/tracking";
import type { Stream } from "@/api/types";
import { Transactions } from "@/features/transactions/transactions";
import { QueryFaces } from "@/ui/query-faces";

export function StreamTransactionsTab({ stream }: { stream: Stream }) {
  const query = useQuery(transactionsQuery(stream.id));
  return (
    <QueryFaces query={query} inWords={problemInWords} loadingLabel="Loading transactions">
      {(now) => <Transactions now={now} stream={stream} />}
    </QueryFaces>
  );
}
