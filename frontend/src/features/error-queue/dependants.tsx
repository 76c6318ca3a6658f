import { Code, Group, List, Stack, Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { problemInWords } from "@/api/problem-in-words";
import { parkedTreeQuery } from "@/api/streams";
import type { ParkedDependant } from "@/api/types";
import { counted, formatCount } from "@/lib/format";
import { QueryFaces } from "@/ui/query-faces";
import { RestCallButton } from "@/ui/rest-call";
import { ShowOlder } from "@/ui/show-older";
import { editsInWords } from "./edits-in-words";

interface DependantsProps {
  streamId: string;
  destinationId: string;
  errorId: number;
  path: string;
}

const STEP_PX = 20;
const DEPTH_DRAWN_MAX = 12;

/** The transactions that wait behind a parked one, each below the one that it follows from. */
export function Dependants({ streamId, destinationId, errorId, path }: DependantsProps) {
  const tree = useInfiniteQuery(parkedTreeQuery(streamId, destinationId, errorId));
  return (
    <QueryFaces query={tree} inWords={problemInWords} loadingLabel="Reading what waits behind it">
      {({ pages }) => {
        const first = pages[0];
        const dependants = pages.flatMap((page) => page.dependants);
        const depths = depthsOf(errorId, dependants);
        return (
          <Stack gap={4} px={14} py={6}>
            <Group gap="sm">
              <Text size="sm">
                {first === undefined || first.total === 0
                  ? `No transaction waits behind ${errorId}.`
                  : `${counted(first.total, "transaction")} behind ${errorId}: each shares a row or a table with the one above it.`}
                {first !== undefined &&
                  first.behind_total > 0 &&
                  ` It waits behind ${behindInWords(first)} itself.`}
              </Text>
              <RestCallButton calls={[{ method: "GET", path: `${path}/${errorId}/dependants` }]} />
            </Group>
            {dependants.length > 0 && (
              <List listStyleType="none" size="sm" aria-label={`Transactions behind ${errorId}`}>
                {dependants.map((dependant) => (
                  <List.Item
                    key={dependant.id}
                    style={{
                      paddingLeft: STEP_PX * Math.min((depths.get(dependant.id) ?? 1) - 1, DEPTH_DRAWN_MAX),
                    }}
                  >
                    {dependant.id} · xid {dependant.xid} · <Code>{dependant.commit_lsn}</Code> ·{" "}
                    {counted(dependant.lcrs, "change")} in {dependant.tables.join(", ")} · behind{" "}
                    {behindInWords(dependant)}.{editsInWords(dependant)}
                  </List.Item>
                ))}
              </List>
            )}
            <ShowOlder query={tree} label={`Show more behind ${errorId}`} />
          </Stack>
        );
      }}
    </QueryFaces>
  );
}

/** A parent comes before its children. */
export function depthsOf(
  root: number,
  dependants: Pick<ParkedDependant, "id" | "parent">[],
): Map<number, number> {
  const depths = new Map([[root, 0]]);
  for (const { id, parent } of dependants) depths.set(id, (depths.get(parent) ?? 0) + 1);
  return depths;
}

function behindInWords({ behind, behind_total }: Pick<ParkedDependant, "behind" | "behind_total">): string {
  const more = behind_total - behind.length;
  return `${behind.join(", ")}${more > 0 ? ` and ${formatCount(more)} more` : ""}`;
}
