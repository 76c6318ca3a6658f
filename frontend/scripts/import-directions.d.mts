export function place(path: string): { layer: string; part: string };
export function violation(from: string, to: string): string | null;
export function networkViolation(path: string, text: string): string | null;
export function specifiers(text: string): string[];
