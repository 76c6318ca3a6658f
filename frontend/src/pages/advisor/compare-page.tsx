import { Button, Group, SimpleGrid, Text } from "@mantine/core";
import { IconSwitchHorizontal } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { comparisonQuery } from "@/api/advisor";
import { problemInWords } from "@/api/problem-in-words";
import type { RunSummary } from "@/api/types";
import { ComparisonView } from "@/features/advisor-compare/comparison";
import { runTitle } from "@/features/advisor-runs/runs";
import { reasonInWords } from "@/lib/advisor";
import { formatTime } from "@/lib/format";
import { AnchorLink } from "@/ui/anchor-link";
import { Empty } from "@/ui/faces";
import { PageHeader } from "@/ui/page-header";
import { Panel } from "@/ui/panel";
import { QueryFaces } from "@/ui/query-faces";
import { RestCallButton } from "@/ui/rest-call";

const route = getRouteApi("/shell/advisor/compare");

export function ComparePage() {
  const { before, after } = route.useSearch();
  if (!before || !after) {
    return (
      <Empty
        title="No runs selected"
        actions={
          <Button component={Link} to="/advisor">
            All runs
          </Button>
        }
      >
        Select two runs in the list, then compare them.
      </Empty>
    );
  }
  return <Compare before={before} after={after} />;
}

function Compare({ before, after }: { before: number; after: number }) {
  const navigate = route.useNavigate();
  const query = useQuery(comparisonQuery(before, after));
  return (
    <>
      <PageHeader
        title="Compare runs"
        description={
          <AnchorLink to="/advisor" size="sm">
            Advisor
          </AnchorLink>
        }
        actions={
          <>
            <RestCallButton
              calls={[{ method: "GET", path: `/api/v1/advisor/comparison?before=${before}&after=${after}` }]}
            />
            <Button
              variant="default"
              leftSection={<IconSwitchHorizontal size={14} aria-hidden />}
              onClick={() => navigate({ search: { before: after, after: before }, replace: true })}
            >
              Swap
            </Button>
          </>
        }
      />
      <QueryFaces query={query} inWords={problemInWords} rows={8} loadingLabel="Loading the comparison">
        {(comparison) => (
          <>
            <SimpleGrid cols={2} spacing="sm" mb="sm">
              <RunPanel title="Before" run={comparison.before} />
              <RunPanel title="After" run={comparison.after} />
            </SimpleGrid>
            <ComparisonView comparison={comparison} />
          </>
        )}
      </QueryFaces>
    </>
  );
}

function RunPanel({ title, run }: { title: string; run: RunSummary }) {
  return (
    <Panel title={title}>
      <Group gap={8}>
        <AnchorLink to="/advisor/runs/$runId" params={{ runId: String(run.id) }} size="sm" fw={600}>
          {runTitle(run)}
        </AnchorLink>
        <Text size="sm" c="dimmed">
          {formatTime(run.at)} · {reasonInWords(run.reason)}
        </Text>
      </Group>
      {run.note && <Text size="sm">{run.note}</Text>}
    </Panel>
  );
}
