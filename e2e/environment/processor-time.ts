// Processor time of the browser, in a measure that means the same on a slow machine and on a fast one.
import type { Browser } from "@playwright/test";

/** Seconds of processor time, of all of the browser's processes: its drawing is not the main thread's alone. */
export async function spentBy(browser: Browser): Promise<() => Promise<number>> {
  const session = await browser.newBrowserCDPSession();
  return async () => {
    const { processInfo } = await session.send("SystemInfo.getProcessInfo");
    return processInfo.reduce((sum, { cpuTime }) => sum + cpuTime, 0);
  };
}

const CELLS = 200;
const WARM_FRAMES = 20;
const FRAMES = 60;

/** Seconds of processor time for a piece of work that is always the same: each of the frames gives a table's cells
 * other texts and widths, so that all of them are laid out and drawn. */
export async function costOfFixedWork(browser: Browser): Promise<number> {
  const page = await browser.newPage();
  const spent = await spentBy(browser);
  const draw = (frames: number) =>
    page.evaluate(
      ([cells, count]) =>
        new Promise<void>((resolve) => {
          document.body.style.cssText = "font: 13px monospace; display: flex; flex-wrap: wrap; margin: 0";
          document.body.innerHTML = "<span></span>".repeat(cells);
          let frame = 0;
          const next = () => {
            if (frame === count) return resolve();
            frame += 1;
            for (const [place, cell] of [...document.body.children].entries()) {
              cell.textContent = String((place + 1) * frame * 7919);
              (cell as HTMLElement).style.width = `${60 + ((place + frame) % 40)}px`;
            }
            requestAnimationFrame(next);
          };
          requestAnimationFrame(next);
        }),
      [CELLS, frames] as const,
    );
  await draw(WARM_FRAMES);
  const before = await spent();
  await draw(FRAMES);
  const cost = (await spent()) - before;
  await page.close();
  return cost;
}
