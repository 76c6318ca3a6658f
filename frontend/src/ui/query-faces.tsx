import type { ReactNode } from "react";
import { Loading } from "./faces";
import { ProblemAlert, type ProblemInWords } from "./problem-alert";

interface QueryLike<Data> {
  data: Data | undefined;
  error: unknown;
  isPending: boolean;
  refetch: () => unknown;
}

interface QueryFacesProps<Data> {
  query: QueryLike<Data>;
  inWords: (error: unknown) => ProblemInWords;
  rows?: number;
  loadingLabel?: string;
  children: (data: Data) => ReactNode;
}

/** Loading, error, data; and data with a warning above when a later read failed. */
export function QueryFaces<Data>({ query, inWords, rows, loadingLabel, children }: QueryFacesProps<Data>) {
  if (query.data === undefined) {
    if (query.error) return <ProblemAlert problem={inWords(query.error)} onRetry={() => query.refetch()} />;
    return <Loading rows={rows} label={loadingLabel} />;
  }
  return (
    <>
      {Boolean(query.error) && (
        <ProblemAlert tone="warning" problem={inWords(query.error)} onRetry={() => query.refetch()} />
      )}
      {children(query.data)}
    </>
  );
}
