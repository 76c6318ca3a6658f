export type Role = "viewer" | "operator" | "admin";

const rank: Record<Role, number> = { viewer: 0, operator: 1, admin: 2 };

/** Each role may do what the ones before it may. */
export function covers(have: Role | undefined, need: Role): boolean {
  return have !== undefined && rank[have] >= rank[need];
}
