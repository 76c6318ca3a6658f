import { TagsInput } from "@mantine/core";
import type { ComparedTable } from "@/api/types";
import { EntryList, TableFields } from "./entry-list";
import { withOptional } from "./optional-member";
import { comparedFault } from "./parameter-values";

interface ComparedTablesProps {
  tables: ComparedTable[];
  onChange: (tables: ComparedTable[]) => void;
  disabled?: boolean;
}

/** The tables whose rows are compared with what the source had before the change. */
export function ComparedTables({ tables, onChange, disabled }: ComparedTablesProps) {
  return (
    <EntryList
      entries={tables}
      onChange={onChange}
      noun="compared table"
      addLabel="Compare a table"
      blank={{}}
      faultOf={(index) => comparedFault(tables, index)}
      disabled={disabled}
    >
      {(table, put) => <Compared table={table} disabled={disabled} onChange={put} />}
    </EntryList>
  );
}

interface ComparedProps {
  table: ComparedTable;
  onChange: (table: ComparedTable) => void;
  disabled?: boolean;
}

function Compared({ table, onChange, disabled }: ComparedProps) {
  const choose = (columns: string[]) => onChange(withOptional(table, "columns", columns));
  return (
    <>
      <TableFields entry={table} onChange={onChange} disabled={disabled} />
      <TagsInput
        label="Columns"
        placeholder={table.columns === undefined ? "all" : undefined}
        w={320}
        value={table.columns ?? []}
        disabled={disabled}
        onChange={choose}
      />
    </>
  );
}
