// Pieces of sentences.

/** "north", "north and south", "north, south and west". */
export function listed(names: readonly string[]): string {
  if (names.length < 2) return names.join();
  return `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

export function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function firstSentence(text: string): string {
  return /^.*?[.!?](?=\s|$)/s.exec(text)?.[0] ?? text;
}

/** Texts of servers and libraries have none. */
export function withFullStop(text: string): string {
  return /[.!?”]$/.test(text) ? text : `${text}.`;
}
