/** Where a database is: one host, or several with commas between, each with a port of its own if it has one. */
export interface Place {
  host: string;
  port: number;
  dbname: string;
}

/** Each host with its port, as the API's `address` shows them: `db1:5432,[::1]:5433`. */
export function serversOf({ host, port }: Omit<Place, "dbname">): string {
  return host
    .split(",")
    .map((part) => serverOf(part.trim(), port))
    .join(",");
}

export function addressOf(place: Place): string {
  return `${serversOf(place)}/${place.dbname}`;
}

function serverOf(part: string, port: number): string {
  if (part.startsWith("[")) return part.endsWith("]") ? `${part}:${port}` : part;
  const colons = part.split(":").length - 1;
  // A directory of sockets may hold colons; of the others, one colon parts host and port, and more are an IPv6 address.
  if (colons === 1 && !part.startsWith("/")) return part;
  return colons > 0 ? `[${part}]:${port}` : `${part}:${port}`;
}
