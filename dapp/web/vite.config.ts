import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

// Where `vite` sends what the page asks of its server; in use, the server gives out the page itself.
const server = process.env.TRAINYARD_DAPP ?? "http://127.0.0.1:8080";

export default defineConfig({
  resolve: { alias: { "~": fileURLToPath(new URL("./src", import.meta.url)) } },
  build: {
    outDir: "../static",
    emptyOutDir: true,
    target: "es2022",
    // Inlined files would need `data:` in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 700,
    rolldownOptions: {
      // "use client" is for servers that render pages, of which there is none here.
      onLog: (level, log, report) => log.code !== "MODULE_LEVEL_DIRECTIVE" && report(level, log),
    },
  },
  server: { host: "127.0.0.1", proxy: { "/api": server, "/ipfs": server, "/healthz": server } },
  test: { include: ["tests/**/*.test.ts"], environment: "node" },
});
