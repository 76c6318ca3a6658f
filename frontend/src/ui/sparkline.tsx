import type { Maybe } from "@/lib/format";

interface SparklineProps {
  values: Maybe[];
  label: string;
  width?: number;
  height?: number;
}

/** The last minutes at a glance. Unknown values leave a gap. */
export function Sparkline({ values, label, width = 96, height = 24 }: SparklineProps) {
  const top = Math.max(0, ...values.map((value) => value ?? 0));
  const step = width / Math.max(1, values.length - 1);
  let path = "";
  let pen = false;
  values.forEach((value, index) => {
    if (value === null || value === undefined) {
      pen = false;
      return;
    }
    const x = index * step;
    const y = height - 2 - (top > 0 ? (value / top) * (height - 4) : 0);
    path += `${pen ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = true;
  });
  return (
    <svg
      width={width}
      height={height}
      role="img"
      aria-label={label}
      style={{ display: "block", overflow: "visible" }}
    >
      <line x1="0" x2={width} y1={height - 1.5} y2={height - 1.5} stroke="var(--border-subtle)" />
      <path d={path} fill="none" stroke="var(--series-1)" strokeWidth="1.5" strokeLinejoin="round" />
    </svg>
  );
}
