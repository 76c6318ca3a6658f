import { Group, Stack, Text } from "@mantine/core";
import type { PathBottleneck } from "@/api/types";
import { bottleneckInWords, verdictInWords } from "@/lib/advisor";
import { bytes, duration, rate, type Quantity as Value } from "@/lib/format";
import { p99OfSpan } from "@/lib/latency-shown";
import type { MetricName } from "@/lib/metrics";
import { capitalised } from "@/lib/sentences";
import { sumQuantity } from "@/lib/sums";
import { Metric } from "@/ui/quantity";
import { ToneBadge } from "@/ui/tone";
import type { PathModel } from "./path-model";
import classes from "./path-view.module.css";

interface VerdictLineProps {
  bottleneck: PathBottleneck;
  /** Title of the path's most pressing finding: it is the verdict, and the bottleneck its evidence. */
  finding: string | null;
}

/** The limit of the path, in a sentence. */
export function VerdictLine({ bottleneck, finding }: VerdictLineProps) {
  const headline = finding ?? (bottleneck.bottleneck_identified ? bottleneckInWords(bottleneck) : null);
  return (
    <Group gap={10} role="status" aria-label="Verdict" align="flex-start" wrap="nowrap">
      <ToneBadge state={verdictInWords(bottleneck.verdict)} />
      <div>
        {headline && (
          <Text size="sm" fw={600}>
            {headline}
          </Text>
        )}
        <Text size="sm" c={headline ? "dimmed" : undefined}>
          {withoutVerdict(bottleneck.explanation, verdictInWords(bottleneck.verdict).label)}
        </Text>
      </div>
    </Group>
  );
}

/** The sentence, and the path's own figures. */
export function PathVerdict({ model, finding }: { model: PathModel; finding: string | null }) {
  const { bottleneck, figures } = model;
  const of = (name: string) => figures[name] ?? null;
  const shown: [MetricName, string, Value][] = [
    ["lcrRate", "Applied", rate(of("MESSAGE RATE"), "LCR")],
    ["transactionRate", "Transactions", rate(of("TRANSACTION RATE"), "txn")],
    ["latencyP50", "Latency p50", duration(of("LATENCY P50"))],
    [
      "latencyP99",
      "Latency p99",
      sumQuantity(p99OfSpan(of("LATENCY P99"), of("LATENCY AT LEAST")), duration),
    ],
    ["lagBytes", "Lag", bytes(of("REPLICATION LAG"))],
    ["lagSeconds", "Time to catch up", duration(of("TIME TO CATCH UP"))],
  ];
  return (
    <Stack gap={10}>
      {bottleneck && <VerdictLine bottleneck={bottleneck} finding={finding} />}
      <div className={classes.figures}>
        {shown.map(([metric, label, quantity]) => (
          <Metric key={label} metric={metric} label={label} size="lg" quantity={quantity} />
        ))}
      </div>
    </Stack>
  );
}

/** The badge beside it says the verdict already. */
function withoutVerdict(explanation: string, label: string): string {
  if (!explanation.startsWith(`${label}: `)) return explanation;
  return capitalised(explanation.slice(label.length + 2));
}
