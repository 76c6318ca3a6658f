import { describe, expect, it } from "vitest";
import { networkViolation, place, specifiers, violation } from "../../scripts/import-directions.mjs";

describe("import directions", () => {
  it.each([
    ["app/router.tsx", "pages/login/login-page", null],
    ["pages/login/login-page.tsx", "features/identity/tokens", null],
    ["features/identity/tokens.tsx", "ui/panel", null],
    ["features/identity/tokens.tsx", "features/identity/roles", null],
    ["features/identity/tokens.tsx", "features/parameters/parameter-fields", /feature/],
    ["features/identity/tokens.tsx", "pages/login/login-page", /features must not import pages/],
    ["pages/login/login-page.tsx", "pages/stream/stream-page", /page/],
    ["pages/login/login-page.tsx", "app/theme", /pages must not import app/],
    ["ui/panel.tsx", "api/client", /ui must not import api/],
    ["lib/format.ts", "ui/panel", /lib must not import ui/],
    ["api/client.ts", "lib/format", null],
    ["api/client.ts", "features/identity/roles", /api must not import features/],
    ["ui/panel.tsx", "test/render", /product code/],
    ["ui/panel.test.tsx", "test/render", null],
  ])("%s → %s", (from, to, reason) => {
    const found = violation(from, to);
    if (reason === null) expect(found).toBeNull();
    else expect(found).toMatch(reason);
  });

  it("lets only the API layer use the network", () => {
    expect(networkViolation("features/x/y.ts", "await fetch ('/api')")).toMatch(/only src\/api/);
    expect(networkViolation("pages/x/y.tsx", "new EventSource('/e')")).toMatch(/only src\/api/);
    expect(networkViolation("api/live.ts", "new EventSource('/e')")).toBeNull();
    expect(networkViolation("pages/x/y.tsx", "query.refetch()")).toBeNull();
  });

  it("sees static, dynamic and side-effect imports and re-exports", () => {
    const text = `import a from "@/a";\nimport "./b.css";\nexport { c } from "../c";\nconst d = () => import("@/d");`;
    expect(specifiers(text)).toEqual(["@/a", "./b.css", "../c", "@/d"]);
  });

  it("knows files that belong to no part", () => {
    expect(place("main.tsx")).toEqual({ layer: "app", part: "" });
  });
});
