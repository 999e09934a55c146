// Starts the plugin: its source where this node takes the types out itself, else what `tsc` made of it.

import { existsSync } from "node:fs";

const strips = Boolean(/** @type {any} */ (process.features).typescript);
if (!strips && !existsSync(new URL("src/agent.mjs", import.meta.url))) {
  console.error(`node ${process.versions.node} runs no TypeScript: make src/agent.mjs with tsc, or take node 22.18 or later`);
  process.exit(1);
}
await import(strips ? "./src/agent.mts" : "./src/agent.mjs");
