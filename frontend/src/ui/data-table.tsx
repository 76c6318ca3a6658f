import { Table, Tooltip, UnstyledButton } from "@mantine/core";
import { IconArrowDown, IconArrowsSort, IconArrowUp } from "@tabler/icons-react";
import { Fragment, memo, type ReactNode, useMemo, useRef, useState } from "react";
import { DataCards } from "./data-cards";
import classes from "./data-table.module.css";
import { useNarrow } from "./narrow";
import { ROW_PX, useVisibleRows } from "./visible-rows";

export interface Column<Row> {
  key: string;
  header: string;
  definition?: string;
  cell: (row: Row) => ReactNode;
  /** When given, the column sorts by it. Unknown values (null) come last either way. */
  sortBy?: (row: Row) => number | string | null | undefined;
  align?: "left" | "right";
  width?: number | string;
}

export interface Sort {
  key: string;
  descending: boolean;
}

export function sortRows<Row>(rows: Row[], columns: Column<Row>[], sort: Sort | null): Row[] {
  const by = sort && columns.find((column) => column.key === sort.key)?.sortBy;
  if (!sort || !by) return rows;
  const sign = sort.descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const left = by(a);
    const right = by(b);
    if (left === null || left === undefined) return right === null || right === undefined ? 0 : 1;
    if (right === null || right === undefined) return -1;
    if (typeof left === "string" || typeof right === "string")
      return sign * String(left).localeCompare(String(right), "en", { numeric: true });
    return sign * (left - right);
  });
}

interface DataTableProps<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  rowKey: (row: Row) => string;
  initialSort?: Sort;
  empty?: ReactNode;
  maxHeight?: number;
  /** The content below a row, as wide as the table; null: none. Not with maxHeight. */
  below?: (row: Row) => ReactNode;
  /** The name of a row's card: with it, the rows are cards on a phone. Not with maxHeight or below. */
  cardName?: (row: Row) => string;
}

export function DataTable<Row>({
  label,
  columns,
  rows,
  rowKey,
  initialSort,
  empty,
  maxHeight,
  below,
  cardName,
}: DataTableProps<Row>) {
  const [sort, setSort] = useState<Sort | null>(initialSort ?? null);
  const sorted = useMemo(() => sortRows(rows, columns, sort), [rows, columns, sort]);
  const toggle = (key: string) =>
    setSort((now) => (now?.key === key ? { key, descending: !now.descending } : { key, descending: false }));

  const scroller = useRef<HTMLElement>(null);
  const shown = useVisibleRows(scroller, sorted.length, maxHeight);
  const narrow = useNarrow();

  if (narrow && cardName && sorted.length > 0)
    return <DataCards label={label} columns={columns} rows={sorted} rowKey={rowKey} nameOf={cardName} />;
  const table = (
    <Table
      aria-label={label}
      highlightOnHover
      aria-rowcount={sorted.length + 1}
      stickyHeader={maxHeight !== undefined}
      className={classes.table}
    >
      <Table.Thead>
        <Table.Tr>
          {columns.map((column) => (
            <Table.Th
              key={column.key}
              style={{ textAlign: column.align ?? "left", width: column.width }}
              aria-sort={
                sort?.key === column.key ? (sort.descending ? "descending" : "ascending") : undefined
              }
            >
              <Header column={column} sort={sort} onSort={toggle} />
            </Table.Th>
          ))}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        <Spacer rows={shown.first} columns={columns.length} />
        {sorted.slice(shown.first, shown.end).map((row) => (
          <Fragment key={rowKey(row)}>
            <RowCells row={row} columns={columns as Column<unknown>[]} />
            <Below columns={columns.length}>{below?.(row)}</Below>
          </Fragment>
        ))}
        <Spacer rows={sorted.length - shown.end} columns={columns.length} />
        {sorted.length === 0 && empty && (
          <Table.Tr>
            <Table.Td colSpan={columns.length} className={classes.empty}>
              {empty}
            </Table.Td>
          </Table.Tr>
        )}
      </Table.Tbody>
    </Table>
  );
  if (maxHeight === undefined && !narrow) return table;
  return (
    <section
      ref={scroller}
      style={{ maxHeight, overflow: "auto" }}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
      tabIndex={0}
      aria-label={`${label}, scrollable`}
    >
      {table}
    </section>
  );
}

function Below({ columns, children }: { columns: number; children: ReactNode }) {
  if (children === undefined || children === null) return null;
  return (
    <Table.Tr>
      <Table.Td colSpan={columns}>{children}</Table.Td>
    </Table.Tr>
  );
}

/** Stands for rows that are not drawn. */
function Spacer({ rows, columns }: { rows: number; columns: number }) {
  if (rows <= 0) return null;
  return (
    <tr aria-hidden style={{ height: rows * ROW_PX }}>
      <td colSpan={columns} style={{ padding: 0, height: "auto", border: "none" }} />
    </tr>
  );
}

/** A live table changes a few rows at a time: with columns that stay the same, the others are not drawn anew. */
const RowCells = memo(function RowCells({ row, columns }: { row: unknown; columns: Column<unknown>[] }) {
  return (
    <Table.Tr>
      {columns.map((column) => (
        <Table.Td key={column.key} style={{ textAlign: column.align ?? "left" }} className="numeric">
          {column.cell(row)}
        </Table.Td>
      ))}
    </Table.Tr>
  );
});

function Header<Row>({
  column,
  sort,
  onSort,
}: {
  column: Column<Row>;
  sort: Sort | null;
  onSort: (key: string) => void;
}) {
  const icon = { size: 12, "aria-hidden": true } as const;
  const content = column.sortBy ? (
    <UnstyledButton className={classes.sort} onClick={() => onSort(column.key)}>
      {column.header}
      {sort?.key !== column.key ? (
        <IconArrowsSort {...icon} className={classes.unsorted} />
      ) : sort.descending ? (
        <IconArrowDown {...icon} />
      ) : (
        <IconArrowUp {...icon} />
      )}
    </UnstyledButton>
  ) : (
    <span>{column.header}</span>
  );
  return column.definition ? <Tooltip label={column.definition}>{content}</Tooltip> : content;
}
