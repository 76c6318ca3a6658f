import { Button, Stack } from "@mantine/core";
import { IconAffiliate } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useCallback } from "react";
import { topologyQuery } from "@/api/operations";
import { problemInWords } from "@/api/problem-in-words";
import type { Topology } from "@/api/types";
import { TopologyGraph } from "@/features/topology-graph/topology-graph";
import { TopologyTable } from "@/features/topology-graph/topology-table";
import { Empty } from "@/ui/faces";
import { PageHeader } from "@/ui/page-header";
import { Panel } from "@/ui/panel";
import { QueryFaces } from "@/ui/query-faces";
import { RestCallButton } from "@/ui/rest-call";

export function TopologyPage() {
  const topology = useQuery(topologyQuery);
  const navigate = useNavigate();
  const open = useCallback(
    (node: Topology["nodes"][number]) => {
      if (node.stream_id) void navigate({ to: "/streams/$streamId", params: { streamId: node.stream_id } });
      else if (node.database_id)
        void navigate({ to: "/databases/$databaseId", params: { databaseId: node.database_id } });
    },
    [navigate],
  );
  return (
    <>
      <PageHeader
        title="Topology"
        description="Databases and the components between them; on each link, the changes that flow over it."
        actions={<RestCallButton calls={[{ method: "GET", path: "/api/v1/topology" }]} />}
      />
      <QueryFaces query={topology} inWords={problemInWords} loadingLabel="Loading the topology">
        {(known) =>
          known.nodes.length === 0 ? (
            <Panel>
              <Empty
                icon={<IconAffiliate size={40} stroke={1.5} />}
                title="Nothing to draw yet"
                actions={
                  <Button component={Link} to="/streams/new">
                    Create stream
                  </Button>
                }
              >
                The graph shows streams with their databases and components.
              </Empty>
            </Panel>
          ) : (
            <Stack gap="sm">
              <TopologyGraph topology={known} onOpen={open} />
              <Panel flush title="Links">
                <TopologyTable topology={known} />
              </Panel>
            </Stack>
          )
        }
      </QueryFaces>
    </>
  );
}
