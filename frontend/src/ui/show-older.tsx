import { Button, Center } from "@mantine/core";

/** Below a list that is read page by page: reads the next page. Shows nothing when there is none. */
export function ShowOlder({
  query,
  label = "Show older",
}: {
  label?: string;
  query: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown };
}) {
  if (!query.hasNextPage) return null;
  return (
    <Center p="sm">
      <Button variant="default" loading={query.isFetchingNextPage} onClick={() => query.fetchNextPage()}>
        {label}
      </Button>
    </Center>
  );
}
