/** `of` with the member, or without it where it is empty: the API reads an omitted one as "any", and refuses "" and []. */
export function withOptional<T extends object, K extends keyof T>(
  of: T,
  member: K,
  value: T[K] & (string | string[]),
): T {
  const { [member]: _, ...others } = of;
  return (value.length === 0 ? others : { ...others, [member]: value }) as T;
}
