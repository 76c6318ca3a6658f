import { type RefObject, useEffect, useState } from "react";

/** Height of a row of a table, as data-table.module.css sets it. */
export const ROW_PX = 36;
/** Rows that are drawn above and below what is seen, so that a fast scroll shows no hole. */
const MARGIN = 8;
/** Shorter tables are drawn whole. */
const DRAWN_WHOLE_MAX = 40;

export interface VisibleRows {
  /** Half open. */
  first: number;
  end: number;
}

export function visibleRows(count: number, scrollTop: number, height: number): VisibleRows {
  if (count <= DRAWN_WHOLE_MAX) return { first: 0, end: count };
  const drawn = Math.ceil(height / ROW_PX) + 2 * MARGIN;
  const top = Math.floor(scrollTop / ROW_PX) - MARGIN;
  const first = Math.max(0, Math.min(top, count - drawn));
  return { first, end: Math.min(count, first + drawn) };
}

/** The rows of a long table in a box of `height` that are drawn. Without a height of its own a table is drawn whole. */
export function useVisibleRows(
  box: RefObject<HTMLElement | null>,
  count: number,
  height: number | undefined,
): VisibleRows {
  const [scrollTop, setScrollTop] = useState(0);
  useEffect(() => {
    const element = box.current;
    if (!element || height === undefined) return;
    // In steps, so that not each pixel draws the table anew.
    const follow = () => setScrollTop(Math.floor(element.scrollTop / (4 * ROW_PX)) * 4 * ROW_PX);
    element.addEventListener("scroll", follow, { passive: true });
    return () => element.removeEventListener("scroll", follow);
  }, [box, height]);
  return height === undefined ? { first: 0, end: count } : visibleRows(count, scrollTop, height);
}
