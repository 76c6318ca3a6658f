import { Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { problemInWords } from "@/api/problem-in-words";
import { accessPolicyQuery, useUpdateAccessPolicy } from "@/api/second-factor";
import type { Demand } from "@/api/types";
import { Panel } from "@/ui/panel";
import { ProblemAlert } from "@/ui/problem-alert";
import { QueryFaces } from "@/ui/query-faces";
import { demands } from "./second-factor-words";

/** Of whom a second factor is demanded. */
export function AccessPolicy() {
  const policy = useQuery(accessPolicyQuery);
  const update = useUpdateAccessPolicy();
  return (
    <Panel title="Access">
      {update.isError && <ProblemAlert problem={problemInWords(update.error)} />}
      <QueryFaces query={policy} inWords={problemInWords} loadingLabel="Loading the access policy">
        {(known) => (
          <Select
            label="Require a second factor of"
            description="Users without one must set one up before they can do anything else. API tokens need none."
            maw={520}
            data={demands}
            value={known.require_second_factor}
            disabled={update.isPending}
            allowDeselect={false}
            onChange={(demand) => demand && update.mutate({ demand: demand as Demand, etag: known.etag })}
          />
        )}
      </QueryFaces>
    </Panel>
  );
}
