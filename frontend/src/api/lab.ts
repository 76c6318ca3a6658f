import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { client, unwrap } from "./client";
import { keys } from "./keys";
import type { Lab, LabCauseName } from "./types";

const AT_WORK_MS = 1000;
const QUIET_MS = 15_000;

function atWork({ load, causes }: Lab): boolean {
  return [load, ...causes].some((action) => action && action.state !== "off");
}

export const labQuery = queryOptions({
  queryKey: keys.lab,
  queryFn: ({ signal }) => unwrap(client.GET("/api/v1/lab", { signal })),
  refetchInterval: ({ state: { data } }) => (data && atWork(data) ? AT_WORK_MS : QUIET_MS),
  retry: false,
});

export type LabChange =
  | { start: LabCauseName; delay_ms?: number }
  | { stop: LabCauseName }
  | { rate: number }
  | "reset";

/** Each answers with the lab as it is then. */
export function useLabChange() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (change: LabChange) => unwrap(request(change)),
    onMutate: async (change) => {
      await cache.cancelQueries({ queryKey: keys.lab });
      // The slider stays where it was put: the next key moves it on from there.
      if (typeof change === "object" && "rate" in change) {
        cache.setQueryData<Lab>(keys.lab, (lab) =>
          lab?.load ? { ...lab, load: { ...lab.load, rate: change.rate } } : lab,
        );
      }
    },
    onSuccess: (lab) => cache.setQueryData(keys.lab, lab),
    onError: () => cache.invalidateQueries({ queryKey: keys.lab }),
  });
}

function request(change: LabChange) {
  if (change === "reset") return client.POST("/api/v1/lab:reset");
  if ("rate" in change) return client.PUT("/api/v1/lab/load", { body: { rate: change.rate } });
  if ("start" in change) {
    return client.POST("/api/v1/lab/causes/{cause}:start", {
      params: { path: { cause: change.start } },
      body: change.delay_ms === undefined ? undefined : { delay_ms: change.delay_ms },
    });
  }
  return client.POST("/api/v1/lab/causes/{cause}:stop", { params: { path: { cause: change.stop } } });
}
