// Accessibility that every page and dialogue has to have, as they stand in the browser now.
import AxeBuilder from "@axe-core/playwright";
import { expect, type Page } from "@playwright/test";

async function expectNoViolations(page: Page, where: string): Promise<void> {
  const { violations } = await new AxeBuilder({ page })
    .options({ rules: { "target-size": { enabled: true } } })
    .analyze();
  const found = violations.flatMap(({ id, help, nodes }) =>
    nodes.map(
      (node) =>
        `${id} (${help}): ${node.target.join(" ")} — ${node.failureSummary?.split("\n").at(1)?.trim()}`,
    ),
  );
  expect.soft(found, where).toEqual([]);
}

/**
 * Links and buttons that a finger misses: around its middle each is hit over 24 px. Links in sentences may be as low as
 * their lines; what lies below something else is no target now.
 */
async function smallTargets(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const inSentence = (element: Element) =>
      element.matches("a") &&
      [...(element.parentElement?.childNodes ?? [])].some(
        (node) => node.nodeType === Node.TEXT_NODE && /\p{L}{2}/u.test(node.textContent ?? ""),
      );
    const found = [...document.querySelectorAll("a[href], button, [role=button]")].flatMap((element) => {
      if (inSentence(element)) return [];
      element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
      const { left, top, width, height } = element.getBoundingClientRect();
      const isHit = (right: number, down: number) =>
        element.contains(document.elementFromPoint(left + width / 2 + right, top + height / 2 + down));
      const reached = [isHit(-11.5, 0), isHit(11.5, 0), isHit(0, -11.5), isHit(0, 11.5)];
      if (!isHit(0, 0) || reached.every(Boolean)) return [];
      const name = element.getAttribute("aria-label") ?? element.textContent?.trim();
      return [`${element.tagName} “${name}”: ${Math.round(width)}×${Math.round(height)}`];
    });
    window.scrollTo(0, 0);
    return found;
  });
}

/** Fades and slides change contrast on their way. */
async function settled(page: Page): Promise<void> {
  await page.evaluate(() =>
    Promise.allSettled(
      document
        .getAnimations()
        .filter((animation) => animation.effect?.getComputedTiming().iterations !== Number.POSITIVE_INFINITY)
        .map((animation) => animation.finished),
    ),
  );
}

/** Nothing that axe finds, and no target that a finger misses. `where` names the page in the message. */
export async function expectAccessible(page: Page, where: string): Promise<void> {
  // The pointer rests where it clicked last: what lies there now may show its tooltip, or be about to.
  await page.mouse.move(0, 0);
  await expect(page.getByRole("tooltip")).toHaveCount(0);
  await settled(page);
  await expectNoViolations(page, where);
  expect.soft(await smallTargets(page), `${where}: targets of less than 24 px`).toEqual([]);
}
