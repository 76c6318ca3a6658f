import { queryOptions } from "@tanstack/react-query";
import { client, unwrap } from "./client";
import { keys } from "./keys";

/** The control plane's version. It changes under an open page when the control plane is upgraded. */
export const versionQuery = queryOptions({
  queryKey: keys.version,
  queryFn: async ({ signal }) => (await unwrap(client.GET("/healthz", { signal }))).version,
  refetchInterval: 60_000,
});
