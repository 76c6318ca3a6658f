import { screen } from "@testing-library/react";
import { ReactFlowProvider } from "@xyflow/react";
import { expect, it } from "vitest";
import type { Topology } from "@/api/types";
import { renderUi } from "@/test/render";
import { TopologyNodeView } from "./topology-node";

const node: Topology["nodes"][number] = {
  id: "n",
  kind: "DATABASE",
  label: "a-database-with-a-name-that-is-much-longer-than-others-are",
  state: "IN FLOW CONTROL: TOO MANY UNBROWSED MESSAGES",
  stream_id: null,
  engine_id: null,
  engine: null,
  engine_state: null,
  reason: null,
  destination_id: null,
  database_id: "n",
};

it("has what may be cut off in full in its title", () => {
  const props = { data: { node, onOpen: () => {} } } as unknown as Parameters<typeof TopologyNodeView>[0];
  renderUi(
    <ReactFlowProvider>
      <TopologyNodeView {...props} />
    </ReactFlowProvider>,
  );
  expect(screen.getByTitle(node.label)).toHaveTextContent(node.label);
  const state = screen.getByTitle(/^In flow control: too many unbrowsed messages\. The queue is full/);
  expect(state).toHaveTextContent("In flow control");
});
