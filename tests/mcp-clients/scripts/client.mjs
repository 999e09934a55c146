// The client library for Node.js, driven by a plan: `node client.mjs FOLDER PLAN`.
//
// FOLDER holds the installed packages. PLAN is JSON; crate page and README say what stands in it. What came of each step is
// printed as one JSON document at the end.

import { createRequire } from 'node:module';

const [folder, text] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
const { CallToolResultSchema } = require('@modelcontextprotocol/sdk/types.js');

const plan = JSON.parse(text);
const [command, ...args] = plan.server;
const client = new Client({ name: 'offshoot-test', version: '1.0.0' });
// Without `env` the server would be handed a few variables, and neither socket nor ticket.
await client.connect(new StdioClientTransport({ command, args, env: process.env }));

const answers = [];
for (const step of plan.steps) {
  answers.push('tool' in step ? await call(step) : await client.listTools());
}
const report = {
  server: client.getServerVersion(),
  instructions: client.getInstructions(),
  answers,
};
await client.close();
console.log(JSON.stringify(report));

async function call({ tool, arguments: given = {}, progress = false, cancel = false }) {
  const told = [];
  const abort = new AbortController();
  const options = { signal: abort.signal };
  if (progress || cancel) {
    options.onprogress = ({ progress, message }) => {
      told.push({ progress, message });
      if (cancel) abort.abort('enough');
    };
  }
  const params = { name: tool, arguments: filled(given) };
  try {
    const result = await client.request({ method: 'tools/call', params }, CallToolResultSchema, options);
    const { structuredContent: structured, content, isError = false } = result;
    return { structured, text: content.map(({ text }) => text), isError, progress: told };
  } catch (error) {
    if (abort.signal.aborted) return { cancelled: true, progress: told };
    return { error: { code: error.code, message: error.message }, progress: told };
  }
}

// "$2.runId" stands for what the step with that number answered.
function filled(value) {
  if (Array.isArray(value)) return value.map(filled);
  if (value !== null && typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, filled(inner)]));
  }
  const found = typeof value === 'string' && value.match(/^\$(\d+)\.(.+)$/);
  if (!found) return value;
  return found[2].split('.').reduce((at, name) => at[name], answers[found[1]].structured);
}
