import classes from "./data-cards.module.css";
import type { Column } from "./data-table";

interface DataCardsProps<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  rowKey: (row: Row) => string;
  /** The name of a row's card. */
  nameOf: (row: Row) => string;
}

/** A table's rows on a phone: one card each, its columns below one another. */
export function DataCards<Row>({ label, columns, rows, rowKey, nameOf }: DataCardsProps<Row>) {
  return (
    <ul className={classes.cards} aria-label={label}>
      {rows.map((row) => (
        <li key={rowKey(row)} className={classes.card} aria-label={nameOf(row)}>
          <dl className={classes.fields}>
            {columns.map((column) => (
              <div key={column.key} className={classes.field}>
                <dt title={column.definition}>{column.header}</dt>
                <dd className="numeric">{column.cell(row)}</dd>
              </div>
            ))}
          </dl>
        </li>
      ))}
    </ul>
  );
}
