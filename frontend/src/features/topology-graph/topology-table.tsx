import type { Topology } from "@/api/types";
import { bytes, rate } from "@/lib/format";
import { metrics } from "@/lib/metrics";
import { sentenceCase } from "@/lib/states";
import { type Column, DataTable } from "@/ui/data-table";
import { Quantity } from "@/ui/quantity";
import { StateBadge } from "@/ui/tone";

type Edge = Topology["edges"][number];

const kinds: Record<Edge["kind"], string> = {
  WAL: "write-ahead log",
  LCR: "logical change records",
  PROPAGATION: "logical change records, from engine to engine",
  SQL: "SQL",
};

/** The same graph as rows: each edge with what flows over it. */
export function TopologyTable({ topology }: { topology: Topology }) {
  const label = (id: string) => {
    const node = topology.nodes.find((candidate) => candidate.id === id);
    if (!node) return id;
    if (node.kind === "DATABASE") return node.label;
    return `${sentenceCase(node.kind)} of ${node.label}${node.engine ? ` on ${node.engine}` : ""}`;
  };
  const stateOf = (id: string) => topology.nodes.find((candidate) => candidate.id === id)?.state ?? null;
  const columns: Column<Edge>[] = [
    { key: "from", header: "From", sortBy: (edge) => label(edge.source), cell: (edge) => label(edge.source) },
    { key: "to", header: "To", sortBy: (edge) => label(edge.target), cell: (edge) => label(edge.target) },
    {
      key: "state",
      header: "State",
      definition: "Of the component, or the database, at the link's end.",
      sortBy: (edge) => stateOf(edge.target),
      cell: (edge) => <StateBadge state={stateOf(edge.target)} compact />,
    },
    { key: "kind", header: "Carries", cell: (edge) => kinds[edge.kind] },
    {
      key: "rate",
      header: "LCRs",
      definition: metrics.componentLcrRate.definition,
      align: "right",
      sortBy: (edge) => edge.lcrs_per_second,
      cell: (edge) => <Quantity quantity={rate(edge.lcrs_per_second, "LCR")} />,
    },
    {
      key: "backlog",
      header: "On disk",
      definition: metrics.backlogOnDisk.definition,
      align: "right",
      sortBy: (edge) => edge.backlog_bytes,
      cell: (edge) => <Quantity quantity={bytes(edge.backlog_bytes)} />,
    },
  ];
  return <DataTable label="Links" columns={columns} rows={topology.edges} rowKey={(edge) => edge.id} />;
}
