import {
  infiniteQueryOptions,
  keepPreviousData,
  queryOptions,
  useMutation,
  useQueryClient,
} from "@tanstack/react-query";
import { client, idempotencyKey, unwrap } from "./client";
import { keys } from "./keys";
import type { Rates } from "./live-cache";
import type {
  ChangeEdit,
  DestinationAdd,
  DestinationCreate,
  DestinationUpdate,
  Execution,
  ParameterValue,
  RulesCheckRequest,
  RulesTestRequest,
  StreamCreate,
  TableRules,
  TroubleResolution,
} from "./types";

/**
 * When to read again, counted from the last read: each event that changes the cached data starts the timer of a fixed
 * interval anew, so that with a sample a second it would never end.
 */
function afterLastRead(milliseconds: number) {
  return ({ state }: { state: { dataUpdatedAt: number; errorUpdatedAt: number } }) =>
    Math.max(200, Math.max(state.dataUpdatedAt, state.errorUpdatedAt) + milliseconds - Date.now());
}

export const overviewQuery = queryOptions({
  queryKey: keys.overview,
  queryFn: ({ signal }) => unwrap(client.GET("/api/v1/overview", { signal })),
  refetchInterval: afterLastRead(5000),
});

/** The last rates of each stream; from then on events bring them. */
export const ratesQuery = queryOptions({
  queryKey: keys.rates,
  queryFn: async ({ signal }): Promise<Rates> => {
    const { streams } = await unwrap(client.GET("/api/v1/overview/rates", { signal }));
    return Object.fromEntries(
      streams.map(({ stream_id, times, lcrs_per_second }) => [
        stream_id,
        times.map((at, place) => ({ at, rate: lcrs_per_second[place] ?? null })),
      ]),
    );
  },
  staleTime: Number.POSITIVE_INFINITY,
});

/** Rates come by events; what the sample lacks (tables, copy progress, positions) is read again every two seconds. */
export const streamQuery = (id: string) =>
  queryOptions({
    queryKey: keys.stream(id),
    queryFn: ({ signal }) =>
      unwrap(client.GET("/api/v1/streams/{stream_id}", { params: { path: { stream_id: id } }, signal })),
    refetchInterval: afterLastRead(2000),
  });

/** The last minutes at first, then live.ts appends what the event stream brings. */
export const samplesQuery = (id: string, minutes: number) =>
  queryOptions({
    queryKey: [...keys.samples(id), minutes],
    queryFn: async ({ signal }) => {
      const answer = await unwrap(
        client.GET("/api/v1/streams/{stream_id}/samples", {
          params: { path: { stream_id: id }, query: { seconds: minutes * 60 } },
          signal,
        }),
      );
      return answer.samples;
    },
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
  });

const PARKED = "/api/v1/streams/{stream_id}/destinations/{destination_id}/errors" as const;

/** A part at a time. While an execution runs its progress is read more often. */
export const parkedQuery = (id: string, destinationId: string, rootsOnly: boolean, cause?: string) =>
  infiniteQueryOptions({
    queryKey: [...keys.parked(id, destinationId), rootsOnly, cause],
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        client.GET(PARKED, {
          params: {
            path: { stream_id: id, destination_id: destinationId },
            query: { limit: 50, cursor: pageParam, roots_only: rootsOnly, cause },
          },
          signal,
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => (state.data?.pages[0]?.execution?.state === "RUNNING" ? 2000 : 10_000),
    retry: false,
  });

/**
 * A page at a time, of the changes with higher numbers than `after`. Read when somebody opens it, and not again by
 * itself: each reading stands in the audit log.
 */
export const parkedContentsQuery = (id: string, destinationId: string, errorId: number, after: number) =>
  infiniteQueryOptions({
    queryKey: [...keys.parkedContents(id, destinationId, errorId), after],
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        client.GET(`${PARKED}/{error_id}`, {
          params: {
            path: { stream_id: id, destination_id: destinationId, error_id: errorId },
            query: { after: pageParam },
          },
          signal,
        }),
      ),
    initialPageParam: after,
    getNextPageParam: (page) => page.next_after ?? undefined,
    staleTime: 0,
    gcTime: 0,
    refetchOnWindowFocus: false,
    retry: false,
  });

/** The transactions that wait behind one, in commit order. */
export const parkedTreeQuery = (id: string, destinationId: string, errorId: number) =>
  infiniteQueryOptions({
    queryKey: [...keys.parked(id, destinationId), "tree", errorId],
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        client.GET(`${PARKED}/{error_id}/dependants`, {
          params: {
            path: { stream_id: id, destination_id: destinationId, error_id: errorId },
            query: { limit: 50, cursor: pageParam },
          },
          signal,
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    retry: false,
  });

export const parametersQuery = queryOptions({
  queryKey: keys.parameters,
  queryFn: async ({ signal }) =>
    (await unwrap(client.GET("/api/v1/stream-parameters", { signal }))).parameters,
  staleTime: Number.POSITIVE_INFINITY,
});

export const previewQuery = (body: { source_id: string; rules: TableRules } | null) =>
  queryOptions({
    queryKey: keys.preview(body),
    queryFn: ({ signal }) => {
      if (!body) throw new Error("nothing to preview");
      return unwrap(client.POST("/api/v1/streams:preview-tables", { body, signal }));
    },
    enabled: body !== null && body.rules.include.length > 0,
    placeholderData: keepPreviousData,
    retry: false,
    staleTime: 30_000,
  });

/** Whether row rules fit the source; nothing is changed. */
export function useRulesCheck() {
  return useMutation({
    mutationFn: (body: RulesCheckRequest) => unwrap(client.POST("/api/v1/streams:check-rules", { body })),
  });
}

/** Verdicts of a table's rules on rows and changes; nothing is changed. */
export function useRulesTest() {
  return useMutation({
    mutationFn: (body: RulesTestRequest) => unwrap(client.POST("/api/v1/streams:test-rules", { body })),
  });
}

export interface PreflightBody {
  source_id: string;
  capture_engine_id?: string;
  destinations: DestinationCreate[];
  rules: TableRules;
  capture_kind: StreamCreate["capture_kind"];
  parameters: NonNullable<StreamCreate["parameters"]>;
}

export const preflightQuery = (body: PreflightBody) =>
  queryOptions({
    queryKey: keys.preflight(body),
    queryFn: ({ signal }) => unwrap(client.POST("/api/v1/preflights", { body, signal })),
    retry: false,
    staleTime: 0,
    gcTime: 0,
    refetchOnWindowFocus: false,
  });

function useStreamsChanged() {
  const cache = useQueryClient();
  return async () => {
    await Promise.all([
      cache.invalidateQueries({ queryKey: keys.overview }),
      cache.invalidateQueries({ queryKey: keys.operations }),
      cache.invalidateQueries({ queryKey: keys.databases }),
      cache.invalidateQueries({ queryKey: keys.topology }),
      cache.invalidateQueries({
        predicate: ({ queryKey }) => queryKey[0] === "streams" && queryKey[2] !== "samples",
      }),
    ]);
  };
}

export function useCreateStream() {
  const changed = useStreamsChanged();
  return useMutation({
    mutationFn: (body: StreamCreate) =>
      unwrap(client.POST("/api/v1/streams", { body, params: { header: idempotencyKey() } })),
    onSuccess: changed,
  });
}

export type StreamAction = "start" | "stop" | "retry";

export function useStreamAction(id: string) {
  const changed = useStreamsChanged();
  const params = { path: { stream_id: id } };
  return useMutation({
    mutationFn: (action: StreamAction) => {
      if (action === "start") return unwrap(client.POST("/api/v1/streams/{stream_id}:start", { params }));
      if (action === "stop") return unwrap(client.POST("/api/v1/streams/{stream_id}:stop", { params }));
      return unwrap(client.POST("/api/v1/streams/{stream_id}:retry", { params }));
    },
    onSettled: changed,
  });
}

export function useDeleteStream(id: string) {
  const changed = useStreamsChanged();
  return useMutation({
    mutationFn: (force: boolean) =>
      unwrap(
        client.DELETE("/api/v1/streams/{stream_id}", {
          params: { path: { stream_id: id }, query: { force } },
        }),
      ),
    onSuccess: changed,
  });
}

export interface StreamChange {
  body: {
    name?: string;
    parameters?: Record<string, ParameterValue>;
    rules?: TableRules;
    capture_kind?: StreamCreate["capture_kind"];
    accept?: string[];
  };
  /** Of the stream as it was read; the API refuses when somebody changed it meanwhile. */
  etag: string;
}

export function useUpdateStream(id: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ body, etag }: StreamChange) =>
      unwrap(
        client.PATCH("/api/v1/streams/{stream_id}", {
          body,
          params: { path: { stream_id: id }, header: { "If-Match": etag } },
        }),
      ),
    onSuccess: (stream) => cache.setQueryData(keys.stream(id), stream),
    onError: () => cache.invalidateQueries({ queryKey: keys.stream(id) }),
  });
}

interface ParkedAction {
  errorId: number;
  reason: string | null;
  /** It is discarded also if the audit log keeps only a part. */
  partly?: boolean;
  body?: Execution;
}

/** Executes a parked transaction; with a reason, discards it. */
export function useParkedAction(id: string, destinationId: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: async ({ errorId, reason, partly, body }: ParkedAction) => {
      const params = { path: { stream_id: id, destination_id: destinationId, error_id: errorId } };
      if (reason === null)
        await unwrap(
          client.POST("/api/v1/streams/{stream_id}/destinations/{destination_id}/errors/{error_id}/execute", {
            params,
            body,
          }),
        );
      else
        await unwrap(
          client.DELETE("/api/v1/streams/{stream_id}/destinations/{destination_id}/errors/{error_id}", {
            params: { ...params, query: { reason, partly } },
          }),
        );
    },
    onSettled: () => cache.invalidateQueries({ queryKey: keys.parked(id, destinationId) }),
  });
}

/** Those with a cause, or all of the queue, in the source's order. */
export function useExecuteSeveral(id: string, destinationId: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: async ({ cause, body }: { cause?: string; body?: Execution }) => {
      const params = { path: { stream_id: id, destination_id: destinationId }, query: { cause } };
      await unwrap(
        client.POST("/api/v1/streams/{stream_id}/destinations/{destination_id}/errors:execute", {
          params,
          body,
        }),
      );
    },
    onSettled: () => cache.invalidateQueries({ queryKey: keys.parked(id, destinationId) }),
  });
}

export interface ParkedDecision {
  number: number;
  /** Null takes back what was decided. */
  body: ChangeEdit | null;
  /** Of the transaction as it was read; the API refuses when somebody has decided meanwhile. Null: it has none. */
  etag: string | null;
}

/** Decides about one change of a parked transaction. */
export function useParkedEdit(id: string, destinationId: string, errorId: number) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: async ({ number, body, etag }: ParkedDecision) => {
      const params = {
        path: { stream_id: id, destination_id: destinationId, error_id: errorId, number },
        header: { "If-Match": etag },
      };
      const edit = `${PARKED}/{error_id}/changes/{number}` as const;
      if (body === null) await unwrap(client.DELETE(edit, { params }));
      else await unwrap(client.PUT(edit, { params, body }));
    },
    onSettled: () =>
      Promise.all([
        cache.invalidateQueries({ queryKey: keys.parked(id, destinationId) }),
        cache.invalidateQueries({ queryKey: keys.parkedContents(id, destinationId, errorId) }),
      ]),
  });
}

/** Executes a parked transaction and rolls it back. */
export function useDryRun(id: string, destinationId: string) {
  return useMutation({
    mutationFn: ({ errorId, body }: { errorId: number; body?: Execution }) =>
      unwrap(
        client.POST("/api/v1/streams/{stream_id}/destinations/{destination_id}/errors/{error_id}/dry-run", {
          params: { path: { stream_id: id, destination_id: destinationId, error_id: errorId } },
          body,
        }),
      ),
  });
}

export interface TableResolution {
  resolution: TroubleResolution;
  destinationId: string;
  schema: string;
  table: string;
  /** Why a table is copied again; the audit log keeps it. */
  reason?: string;
}

/** Resolves the trouble of a table that is no longer what it was at the source. */
export function useTableResolution(id: string) {
  const changed = useStreamsChanged();
  const of = "/api/v1/streams/{stream_id}";
  return useMutation({
    mutationFn: async ({ resolution, destinationId, schema, table, reason }: TableResolution) => {
      const body = { schema, table };
      const stream = { path: { stream_id: id } };
      const destination = { path: { stream_id: id, destination_id: destinationId } };
      const at = `${of}/destinations/{destination_id}` as const;
      if (resolution === "follow") await unwrap(client.POST(`${of}/tables:follow`, { params: stream, body }));
      else if (resolution === "remove")
        await unwrap(client.POST(`${of}/tables:remove`, { params: stream, body }));
      else if (resolution === "accept")
        await unwrap(client.POST(`${at}/tables:accept`, { params: destination, body }));
      else
        await unwrap(
          client.POST(`${at}/tables:copy`, {
            params: destination,
            body: reason ? { ...body, reason } : body,
          }),
        );
    },
    onSettled: changed,
  });
}

/** One destination of several by itself. */
export function useDestinationAction(id: string, destinationId: string) {
  const changed = useStreamsChanged();
  const params = { path: { stream_id: id, destination_id: destinationId } };
  const at = "/api/v1/streams/{stream_id}/destinations/{destination_id}";
  return useMutation({
    mutationFn: (action: StreamAction) => {
      if (action === "start") return unwrap(client.POST(`${at}:start`, { params }));
      if (action === "stop") return unwrap(client.POST(`${at}:stop`, { params }));
      return unwrap(client.POST(`${at}:retry`, { params }));
    },
    onSettled: changed,
  });
}

/** Replaces the parameters in which one of several destinations differs from the stream. */
export interface DestinationChange {
  body: DestinationUpdate;
  etag: string;
}

export function useUpdateDestination(id: string, destinationId: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ body, etag }: DestinationChange) =>
      unwrap(
        client.PATCH("/api/v1/streams/{stream_id}/destinations/{destination_id}", {
          body,
          params: {
            path: { stream_id: id, destination_id: destinationId },
            header: { "If-Match": etag },
          },
        }),
      ),
    onSuccess: (stream) => cache.setQueryData(keys.stream(id), stream),
    onError: () => cache.invalidateQueries({ queryKey: keys.stream(id) }),
  });
}

export function useDropDestination(id: string, destinationId: string) {
  const changed = useStreamsChanged();
  return useMutation({
    mutationFn: (force: boolean) =>
      unwrap(
        client.DELETE("/api/v1/streams/{stream_id}/destinations/{destination_id}", {
          params: { path: { stream_id: id, destination_id: destinationId }, query: { force } },
        }),
      ),
    onSuccess: changed,
  });
}

export function useAddDestination(id: string) {
  const changed = useStreamsChanged();
  return useMutation({
    mutationFn: (body: DestinationAdd) =>
      unwrap(
        client.POST("/api/v1/streams/{stream_id}/destinations", {
          body,
          params: { path: { stream_id: id }, header: idempotencyKey() },
        }),
      ),
    onSuccess: changed,
  });
}
