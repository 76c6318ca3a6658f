import { IconWand } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { curesQuery } from "@/api/advisor-cures";
import { problemInWords } from "@/api/problem-in-words";
import { CuresTable } from "@/features/advisor-cures/cures-table";
import { Empty } from "@/ui/faces";
import { Panel } from "@/ui/panel";
import { QueryFaces } from "@/ui/query-faces";

export function AdvisorCures({ mayAct }: { mayAct: boolean }) {
  const query = useQuery(curesQuery());
  return (
    <QueryFaces query={query} inWords={problemInWords} loadingLabel="Loading cures">
      {(cures) => (
        <Panel flush>
          {cures.length === 0 ? (
            <Empty icon={<IconWand size={40} stroke={1.5} />} title="No cure has been applied yet">
              Each finding of a run comes with the exact change. Applying it takes a snapshot before and
              after, and shows whether it helped.
            </Empty>
          ) : (
            <CuresTable cures={cures} mayAct={mayAct} />
          )}
        </Panel>
      )}
    </QueryFaces>
  );
}
