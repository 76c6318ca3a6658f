import { List } from "@mantine/core";
import { Panel } from "@/ui/panel";

/** What to do here, in this order. */
export function LabTour() {
  return (
    <Panel title="The tour in five minutes">
      <List type="ordered" size="sm" spacing={4}>
        <List.Item>Look at the path: with the usual load nothing limits it.</List.Item>
        <List.Item>Move the load up. Rates follow within five seconds; the latency hardly does.</List.Item>
        <List.Item>
          Make it slow, by whichever cause you like. The appliers become the bottleneck, the backlog grows.
        </List.Item>
        <List.Item>
          Within half a minute the advisor names the cause, with its evidence and its cure. Run the cure's SQL
          at the destination, if you like: the cause is then shown as cured.
        </List.Item>
        <List.Item>
          Back to normal, and see the backlog go. What you leave on is taken back after ten minutes, a missing
          index after three, once what is being applied has ended.
        </List.Item>
      </List>
    </Panel>
  );
}
