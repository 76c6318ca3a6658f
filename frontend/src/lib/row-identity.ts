interface Table {
  key_columns: string[];
  replica_identity: string;
}

/** How a table's row is found at the destination, in words; null: by nothing. */
export function rowIdentity({ key_columns, replica_identity }: Table): string | null {
  if (key_columns.length > 0) return key_columns.join(", ");
  return replica_identity === "full" ? "all columns" : null;
}
