// Stands in for browser features that Mantine needs and jsdom lacks.
import "@testing-library/jest-dom/vitest";
import { cleanup, configure } from "@testing-library/react";
import { afterEach, vi } from "vitest";

// On a busy machine a test may get no processor time for a minute.
configure({ asyncUtilTimeout: 240_000 });

afterEach(() => {
  cleanup();
  localStorage.clear();
  vi.unstubAllGlobals();
});

window.matchMedia = (query: string) =>
  ({
    matches: false,
    media: query,
    onchange: null,
    addEventListener: () => {},
    removeEventListener: () => {},
    addListener: () => {},
    removeListener: () => {},
    dispatchEvent: () => false,
  }) as MediaQueryList;

class ResizeObserverStub {
  observe() {}
  unobserve() {}
  disconnect() {}
}
window.ResizeObserver = ResizeObserverStub;
window.scrollTo = () => {};
Element.prototype.scrollIntoView = () => {};
// axe asks for a canvas to look at icon fonts; without one it goes on.
HTMLCanvasElement.prototype.getContext = () => null;
if (!document.fonts) Object.defineProperty(document, "fonts", { value: new EventTarget() });
