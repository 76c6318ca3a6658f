import { List } from "@mantine/core";
import { Panel } from "@/ui/panel";

/** Steps for the user, in this order. */
export function LabTour() {
  return (
    <Panel title="The tour in five minutes">
      <List type="ordered" size="sm" spacing={4}>
        <List.Item>Look at the path: with the usual load it has no bottleneck.</List.Item>
        <List.Item>Raise the load. Rates follow within five seconds; latency hardly changes.</List.Item>
        <List.Item>
          Make it slow, with any cause you like. The appliers become the bottleneck and the lag grows.
        </List.Item>
        <List.Item>
          Within half a minute the advisor names the cause, with its evidence and its cure. Run the cure's SQL
          at the destination, if you like: the cause is then shown as cured.
        </List.Item>
        <List.Item>
          Go back to normal and watch the lag shrink. A cause that you leave on ends by itself after ten
          minutes, a missing index after three, once the changes being applied have finished.
        </List.Item>
      </List>
    </Panel>
  );
}
