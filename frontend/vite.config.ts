import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";
import { compressedAssets } from "./compressed-assets";

// The API's address for `npm run dev`; in production the control plane serves the built console itself.
const api = process.env.THALWEG_API ?? "http://127.0.0.1:8642";

export default defineConfig({
  plugins: [react(), compressedAssets()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  server: {
    proxy: Object.fromEntries(
      ["/api", "/help", "/healthz"].map((path) => [path, { target: api, changeOrigin: true }]),
    ),
  },
  build: {
    outDir: "dist",
    sourcemap: false,
    // The reference's viewer is one large file, loaded by its own page only.
    chunkSizeWarningLimit: 1800,
    rolldownOptions: { input: ["index.html", "api-docs.html"] },
  },
  test: {
    testTimeout: 600_000,
    hookTimeout: 600_000,
    projects: [
      // A document costs a second for each file: only what draws gets one.
      { extends: true, test: { name: "logic", environment: "node", include: ["src/**/*.test.ts"] } },
      {
        extends: true,
        test: {
          name: "views",
          environment: "jsdom",
          include: ["src/**/*.test.tsx"],
          setupFiles: ["src/test/setup.ts"],
          css: false,
        },
      },
    ],
  },
});
