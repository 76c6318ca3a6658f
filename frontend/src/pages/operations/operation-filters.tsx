import { Group, Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { OperationFilter } from "@/api/operations";
import { overviewQuery } from "@/api/streams";
import { sentenceCase } from "@/lib/states";

const route = getRouteApi("/shell/operations");

const states = ["pending", "running", "succeeded", "failed"] as const;

const all = (what: string) => ({ value: "", label: `All ${what}` });

interface OperationSearch {
  stream?: string | undefined;
  destination?: string | undefined;
  state?: string | undefined;
}

/** A destination without its stream says nothing: ids of destinations are unique in their stream only. */
export function filterOf({ stream, destination, state }: OperationSearch): OperationFilter {
  const known = states.find((candidate) => candidate === state);
  return {
    ...(stream && { target_id: stream }),
    ...(stream && destination && { destination_id: destination }),
    ...(known && { state: known }),
  };
}

/** Filters by stream, by one of its destinations, and by state. They are in the address. */
export function OperationFilters() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const streams = useQuery(overviewQuery).data?.streams ?? [];
  const destinations = streams.find(({ id }) => id === search.stream)?.destinations ?? [];
  const set = (change: OperationSearch) => navigate({ search: { ...search, ...change }, replace: true });
  return (
    <Group mb="sm" align="flex-start">
      <Select
        label="Stream"
        searchable
        allowDeselect={false}
        data={[all("streams"), ...streams.map(({ id, name }) => ({ value: id, label: name }))]}
        value={search.stream ?? ""}
        onChange={(stream) => set({ stream: stream || undefined, destination: undefined })}
      />
      <Select
        label="Destination"
        description={search.stream ? undefined : "Choose a stream first"}
        inputWrapperOrder={["label", "input", "description"]}
        allowDeselect={false}
        disabled={destinations.length === 0}
        data={[
          all("destinations"),
          ...destinations.map(({ id, database }) => ({ value: id, label: database.name })),
        ]}
        value={search.destination ?? ""}
        onChange={(destination) => set({ destination: destination || undefined })}
      />
      <Select
        label="State"
        allowDeselect={false}
        data={[all("states"), ...states.map((state) => ({ value: state, label: sentenceCase(state) }))]}
        value={filterOf(search).state ?? ""}
        onChange={(state) => set({ state: state || undefined })}
      />
    </Group>
  );
}
