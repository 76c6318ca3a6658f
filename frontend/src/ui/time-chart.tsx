import { Box, Button, Group, Table, Text, Title } from "@mantine/core";
import { useEffect, useId, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { asText, type Maybe, type Quantity } from "@/lib/format";
import type { Tone } from "@/lib/states";
import { clipAt } from "./clip";
import classes from "./time-chart.module.css";

export interface Series {
  label: string;
  values: Maybe[];
  /** 1..12: which of the --series tokens. */
  colour: number;
  /** It belongs to the line of the same colour. */
  isDashed?: boolean;
}

interface TimeChartProps {
  title: string;
  /** Milliseconds since the epoch, ascending; same length as each series' values. */
  times: number[];
  series: Series[];
  format: (value: Maybe) => Quantity;
  /** The axis ends at the last sample and begins so much earlier, however few samples there are. */
  windowSeconds?: number;
  /** The axis shows exactly this, in milliseconds since the epoch, whatever part of it has samples. */
  span?: { from: number; until: number };
  /** Called with the range that was dragged over, in milliseconds since the epoch. */
  onSelect?: (from: number, until: number) => void;
  /** Charts with the same key show their cursors at the same time. */
  syncKey?: string;
  /** Ticks at powers of two: for bytes. */
  binary?: boolean;
  height?: number;
  /** A range that is marked, in milliseconds since the epoch. */
  selected?: { from: number; until: number };
  /** Events to mark: a line at each, a band over those that lasted, in the tone's colour. */
  marks?: ChartMark[];
}

export interface ChartMark {
  /** Milliseconds since the epoch. */
  at: number;
  /** Its end, infinite while it lasts. */
  until?: number;
  tone: Tone;
}

/** Less is a click. */
const DRAG_MIN_PX = 4;
const DAY_SECONDS = 86_400;
const CLOCK = {
  medium: new Intl.DateTimeFormat("sv-SE", { timeStyle: "medium" }),
  short: new Intl.DateTimeFormat("sv-SE", { timeStyle: "short" }),
};
const DAY = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short" });
const BINARY_STEPS = Array.from({ length: 54 }, (_, power) => 2 ** power);

function token(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** A live chart: uPlot draws it, a table shows the same numbers to those who cannot see or do not want the picture. */
export function TimeChart(props: TimeChartProps) {
  const { title, times, series, format, height = 180 } = props;
  const [asTable, setAsTable] = useState(false);
  const [whole, setWhole] = useState(false);
  const clip = useMemo(() => clipAt(series.map(({ values }) => values)), [series]);
  const id = useId();
  return (
    <Box component="section" className={classes.chart} aria-labelledby={id}>
      <Group justify="space-between" wrap="nowrap">
        <Title order={3} id={id}>
          {title}
        </Title>
        <Group gap={4} wrap="nowrap">
          {clip !== null && !asTable && (
            <Button
              size="compact-xs"
              h={24}
              variant="subtle"
              color="gray"
              aria-label={`${title}: ${whole ? "clip the axis" : "show the whole axis"}`}
              title={whole ? "One spike hides the rest" : "Clipped: higher values are cut off"}
              onClick={() => setWhole((now) => !now)}
            >
              {whole ? "Clip" : "Clipped"}
            </Button>
          )}
          <Button
            size="compact-xs"
            h={24}
            variant="subtle"
            color="gray"
            aria-pressed={asTable}
            onClick={() => setAsTable((now) => !now)}
            aria-label={`${title}: show as ${asTable ? "chart" : "table"}`}
          >
            {asTable ? "Chart" : "Table"}
          </Button>
        </Group>
      </Group>
      <Legend series={series} format={format} lastKnown={props.span !== undefined} />
      {asTable ? (
        <ChartTable title={title} times={times} series={series} format={format} height={height} />
      ) : (
        <Plot {...props} height={height} clip={whole ? null : clip} />
      )}
    </Box>
  );
}

/** The end of a chosen span may lie in a gap: there the last value that is known stands for it. */
function newestOf(values: Maybe[], lastKnown: boolean): Maybe {
  return lastKnown ? values.findLast((value) => value !== null && value !== undefined) : values.at(-1);
}

interface LegendProps extends Pick<TimeChartProps, "series" | "format"> {
  lastKnown: boolean;
}

function Legend({ series, format, lastKnown }: LegendProps) {
  return (
    <Group className={classes.legend}>
      {series.map((line) => (
        <Group key={line.label} gap={5} wrap="nowrap">
          <span
            className={classes.swatch}
            data-dashed={line.isDashed || undefined}
            style={{ color: `var(--series-${line.colour})` }}
          />
          <Text size="xs" c="dimmed">
            {line.label}
          </Text>
          <Text size="xs" className="numeric" fw={550}>
            {asText(format(newestOf(line.values, lastKnown)))}
          </Text>
        </Group>
      ))}
    </Group>
  );
}

function ChartTable({ title, times, series, format, height }: TimeChartProps & { height: number }) {
  const rows = times.map((time, index) => ({ time, index })).reverse();
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
    <section style={{ height, overflow: "auto" }} tabIndex={0} aria-label={`${title}, table`}>
      <Table aria-label={title} stickyHeader verticalSpacing={2} fz="xs">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Time</Table.Th>
            {series.map((line) => (
              <Table.Th key={line.label} ta="right">
                {line.label}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map(({ time, index }) => (
            <Table.Tr key={time}>
              <Table.Td>{new Date(time).toLocaleString("sv-SE")}</Table.Td>
              {series.map((line) => (
                <Table.Td key={line.label} ta="right" className="numeric">
                  {asText(format(line.values[index]))}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </section>
  );
}

/** uPlot leaves a gap at null and joins its neighbours at undefined. Most series have neither, and are not copied. */
function gapsAsNull(values: Maybe[]): (number | null)[] {
  return values.includes(undefined) ? values.map((value) => value ?? null) : (values as (number | null)[]);
}

function Plot(props: TimeChartProps & { height: number; clip: number | null }) {
  const { title, times, series, format, height, windowSeconds, binary = false, span, syncKey } = props;
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(format);
  latest.current = format;
  const select = useRef(props.onSelect);
  select.current = props.onSelect;
  const selectable = props.onSelect !== undefined;
  const shown = useRef(span);
  shown.current = span;
  const over = useRef({ selected: props.selected, marks: props.marks, clip: props.clip });
  over.current = { selected: props.selected, marks: props.marks, clip: props.clip };
  const scheme = useScheme();
  // A text, so that it is the same from sample to sample.
  const shape = JSON.stringify(series.map(({ label, colour, isDashed }) => ({ label, colour, isDashed })));

  const data = useMemo<uPlot.AlignedData>(
    () => [times.map((time) => time / 1000), ...series.map((line) => gapsAsNull(line.values))],
    [times, series],
  );
  const dataNow = useRef(data);
  dataNow.current = data;

  // The plot is rebuilt only when its set of lines or the colour scheme changes; samples go in by setData.
  // biome-ignore lint/correctness/useExhaustiveDependencies: `scheme` changes what token() answers
  useEffect(() => {
    const element = host.current;
    if (!element) return;
    const axis = {
      stroke: token("--text-muted"),
      grid: { stroke: token("--border-subtle"), width: 1 },
      ticks: { show: false },
      font: "11px 'Inter Variable'",
    };
    const lines = (JSON.parse(shape) as Pick<Series, "label" | "colour" | "isDashed">[]).map((line) => ({
      label: line.label,
      stroke: token(`--series-${line.colour}`),
      ...(line.isDashed ? { dash: [6, 3] } : {}),
      width: 1.5,
      points: { show: false },
      spanGaps: false,
    }));
    const created = new uPlot(
      {
        width: element.clientWidth || 300,
        height,
        padding: [6, 18, 0, 0],
        legend: { show: false },
        cursor: {
          y: false,
          points: { size: 6 },
          drag: { x: selectable, y: false, setScale: false },
          ...(syncKey ? { sync: { key: syncKey } } : {}),
        },
        hooks: {
          draw: [
            (self) => drawSelected(self, over.current.selected),
            (self) => drawMarks(self, over.current.marks ?? []),
          ],
          setSelect: [
            (self) => {
              const { left, width } = self.select;
              if (width < DRAG_MIN_PX) return;
              select.current?.(self.posToVal(left, "x") * 1000, self.posToVal(left + width, "x") * 1000);
              self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            },
          ],
        },
        scales: {
          x: {
            range: (_plot, low, high) => {
              if (shown.current) return [shown.current.from / 1000, shown.current.until / 1000];
              return [windowSeconds ? high - windowSeconds : low, high];
            },
          },
          y: { range: (_plot, _low, high) => [0, over.current.clip ?? (high > 0 ? high * 1.1 : 1)] },
        },
        axes: [
          {
            ...axis,
            size: 24,
            space: (self) => (spanSeconds(self) > DAY_SECONDS ? 76 : 38),
            values: (_plot, ticks) => clockTicks(ticks),
          },
          {
            ...axis,
            size: 70,
            space: 30,
            ...(binary ? { incrs: BINARY_STEPS } : {}),
            gap: 6,
            values: (self, ticks) =>
              valueTicks(ticks, isZero(self)).map((tick) =>
                tick === null ? "" : asText(latest.current(tick)),
              ),
          },
        ],
        series: [{}, ...lines],
      },
      dataNow.current,
      element,
    );
    plot.current = created;
    const observer = new ResizeObserver(() => created.setSize({ width: element.clientWidth || 300, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      created.destroy();
      plot.current = null;
    };
  }, [shape, height, scheme, windowSeconds, binary, selectable, syncKey]);

  useEffect(() => {
    plot.current?.setData(data);
  }, [data]);
  const { selected, marks, clip } = props;
  // biome-ignore lint/correctness/useExhaustiveDependencies: drawn anew when what lies over the lines changes
  useEffect(() => {
    plot.current?.setData(dataNow.current);
  }, [selected?.from, selected?.until, marks, clip]);

  const now = series
    .map((line) => `${line.label} ${asText(format(newestOf(line.values, span !== undefined)))}`)
    .join(", ");
  return <div ref={host} role="img" aria-label={`${title}, now: ${now}`} style={{ height }} />;
}

/** A translucent band over what was dragged. */
function drawSelected(plot: uPlot, selected: TimeChartProps["selected"]): void {
  if (selected) drawBand(plot, selected.from, selected.until, "--accent");
}

function drawBand({ ctx, bbox, valToPos }: uPlot, from: number, until: number, colour: string): void {
  const [left, right] = [from, until].map((at) =>
    at === Number.POSITIVE_INFINITY
      ? bbox.left + bbox.width
      : Math.min(bbox.left + bbox.width, Math.max(bbox.left, valToPos(at / 1000, "x", true))),
  ) as [number, number];
  ctx.save();
  ctx.globalAlpha = 0.16;
  ctx.fillStyle = token(colour);
  ctx.fillRect(left, bbox.top, Math.max(2, right - left), bbox.height);
  ctx.restore();
}

function drawMarks(plot: uPlot, marks: ChartMark[]): void {
  const { ctx, bbox, valToPos } = plot;
  for (const { at, until, tone } of marks) {
    if (until !== undefined) drawBand(plot, at, until, `--tone-${tone}`);
  }
  ctx.save();
  ctx.setLineDash([4, 3]);
  ctx.lineWidth = 1.5;
  for (const { at, tone } of marks) {
    const x = valToPos(at / 1000, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.strokeStyle = token(`--tone-${tone}`);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

function isZero({ data }: uPlot): boolean {
  return data.slice(1).every((line) => (line as Maybe[]).every((value) => !value));
}

/** Where all is zero the axis has no scale: only the zero means something. */
export function valueTicks(ticks: number[], allZero: boolean): (number | null)[] {
  return allZero ? ticks.map((tick) => (tick === 0 ? 0 : null)) : ticks;
}

function spanSeconds({ scales }: uPlot): number {
  return (scales.x?.max ?? 0) - (scales.x?.min ?? 0);
}

/** 14:05, 14:05:20 when ticks are closer than a minute, 11-21 14:05 or 11-21 when there are several days. */
export function clockTicks(ticks: number[]): string[] {
  const [first = 0, second = 60] = ticks;
  const step = ticks.length > 1 ? second - first : 60;
  const range = (ticks.at(-1) ?? first) - first + step;
  const clock = step < 60 ? CLOCK.medium : CLOCK.short;
  return ticks.map((tick) => {
    const at = new Date(tick * 1000);
    const time = clock.format(at);
    if (range <= DAY_SECONDS) return time;
    const day = DAY.format(at).slice(5);
    return step >= DAY_SECONDS ? day : `${day} ${time}`;
  });
}

function readScheme(): string {
  return document.documentElement.getAttribute("data-mantine-color-scheme") ?? "light";
}

function useScheme(): string {
  const [scheme, setScheme] = useState(readScheme);
  useEffect(() => {
    const observer = new MutationObserver(() => setScheme(readScheme()));
    observer.observe(document.documentElement, { attributeFilter: ["data-mantine-color-scheme"] });
    return () => observer.disconnect();
  }, []);
  return scheme;
}
