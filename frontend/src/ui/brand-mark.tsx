/** Three lines of flow: Thalweg's mark. */
export function BrandMark({ size = 22 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="var(--series-1)" />
      <path
        d="M5 10c5-4 7 4 12 1s6-3 10 0M5 17c5-4 7 4 12 1s6-3 10 0M5 24c5-4 7 4 12 1s6-3 10 0"
        fill="none"
        stroke="var(--surface-raised)"
        strokeWidth="2.4"
        strokeLinecap="round"
      />
    </svg>
  );
}
