import { Table, Text, VisuallyHidden } from "@mantine/core";
import type { ParkedValue } from "@/api/types";
import { asText, bytes } from "@/lib/format";
import classes from "./parked-details.module.css";

interface ParkedValueCellProps {
  value: ParkedValue;
  /** From the destination's row as it is now; null where that is not known. */
  differs?: boolean | null;
  /** The value that is applied in its place; null is NULL. */
  edited?: string | null;
}

/** One cell: the value, whether it differs, and what of it is not shown. Never by colour alone. */
export function ParkedValueCell({ value, differs = null, edited }: ParkedValueCellProps) {
  return (
    <Table.Td className={differs ? classes.differs : undefined}>
      {differs && (
        <>
          <span aria-hidden>≠ </span>
          <VisuallyHidden>differs: </VisuallyHidden>
        </>
      )}
      <Words value={value} />
      {value.cut && (
        <Text size="xs" c="dimmed">
          cut at 1 KiB of {asText(bytes(value.bytes))}
        </Text>
      )}
      {value.state === "raw" && (
        <Text size="xs" c="dimmed">
          raw bytes: the destination cannot read them as the column's type
        </Text>
      )}
      {edited !== undefined && (
        <Text size="xs" className={classes.edited}>
          edited: <Words value={asValue(edited)} />
        </Text>
      )}
    </Table.Td>
  );
}

function asValue(text: string | null): Pick<ParkedValue, "state" | "text"> {
  return { state: text === null ? "null" : "text", text };
}

function Words({ value }: { value: Pick<ParkedValue, "state" | "text"> }) {
  if (value.state === "null") return <span className={classes.word}>NULL</span>;
  if (value.state === "unchanged") return <span className={classes.word}>unchanged, not sent</span>;
  if (value.state === "absent") return <span className={classes.word}>–</span>;
  if (value.text === "") return <span className={classes.word}>empty</span>;
  return <span className={classes.value}>{value.text}</span>;
}
