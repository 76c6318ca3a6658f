import { useQuery } from "@tanstack/react-query";
import { problemInWords } from "@/api/problem-in-words";
import { transactionsQuery } from "@/api/tracking";
import { Transactions } from "@/features/transactions/transactions";
import { QueryFaces } from "@/ui/query-faces";

export function StreamTransactionsTab({ streamId }: { streamId: string }) {
  const query = useQuery(transactionsQuery(streamId));
  return (
    <QueryFaces query={query} inWords={problemInWords} loadingLabel="Loading transactions">
      {(now) => <Transactions now={now} />}
    </QueryFaces>
  );
}
