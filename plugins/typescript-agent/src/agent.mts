// The runtime `typescript-agent` for offshoot: one JSON object a line, on standard input and standard output.
//
// It says its task in upper case. Three tasks do something else: `wait` waits until it is stopped, `ask TEXT` answers with what a
// child says of TEXT, and `fail` fails. Change `turn` until it does what you want; the rest carries lines.
// Node 22.18 and later run this file as it is; for an earlier one `tsc` makes agent.mjs of it.

/** The start of a run, as far as this runtime reads it. */
type Launch = { v: number; task: string };

/** An answer of the host that is awaited. */
type Asked = { resolve: (ok: any) => void; reject: (error: Error) => void };

const MANIFEST = {
  v: 1,
  name: "typescript-agent",
  version: "0.1.0",
  description: "says its task in upper case",
  runtimes: [{
    name: "typescript-agent",
    // "reported": a run tells what it costs. With `turns` it can go on after an answer.
    abilities: { cost: "reported", turns: true },
  }],
};

/** One run. What it returns is its answer. */
async function work(run: Run): Promise<string> {
  run.event(5, { v: 1, status: "started" });
  let answer = await turn(run, run.launch.task);
  for (let letters = 0; ;) {
    // The answer stands. The host says whether there is more to do: results of children, or letters.
    const how = await run.call("turn_ended", { v: 1, answer, lettersTaken: letters });
    if (!how.go) return answer;
    const told = [...(how.results ? [how.results] : []), ...run.letters];
    letters += run.letters.length;
    run.letters = [];
    answer = await turn(run, told.join("\n"));
  }
}

/** One turn of a run. */
async function turn(run: Run, prompt: string): Promise<string> {
  const [verb, ...words] = prompt.split(" ");
  const rest = words.join(" ");
  if (verb === "wait") {
    await run.stopped;
    throw new Stopped();
  }
  if (verb === "fail") throw new Error(rest || "as it was asked to");
  if (verb === "ask") {
    const asked = await run.ask({ op: "spawn", request: { v: 1, request: { task: rest } } });
    if (asked.refusal) return asked.refusal.message;
    const { ended } = await run.call("wait", { v: 1, runs: [asked.run], mode: "all" });
    return ended[0].data?.text ?? ended[0].status;
  }
  run.event(1, "saying it louder");
  // A tool that is used, with its input: shown, and kept in the record.
  run.event(2, { v: 1, name: "upper", input: { text: prompt } });
  // What was used so far, never less than before. Money is known, or a number of runs of which it is unknown.
  run.used += prompt.split(/\s+/).length;
  run.event(4, {
    v: 1,
    usage: { input: run.used, output: run.used, cacheRead: 0, cacheWrite: 0 },
    cost: { knownUsd: run.used / 1000, estimatedUsd: 0, unknownRuns: 0 },
  });
  return prompt.toUpperCase();
}

/** The run was asked to end. */
class Stopped extends Error {}

/** One run: what it was started with, and the ways to its host. */
class Run {
  readonly id: number;
  readonly launch: Launch;
  readonly stopped: Promise<void>;
  stop = (): void => {};
  letters: string[] = [];
  used = 0;

  constructor(id: number, launch: Launch) {
    this.id = id;
    this.launch = launch;
    this.stopped = new Promise((stop) => { this.stop = stop; });
  }

  event(kind: number, payload: object | string): void {
    send({ op: "event", of: this.id, kind, payload });
  }

  call(name: string, args: object): Promise<any> {
    return this.ask({ op: "call", name, args });
  }

  /** Asks the host something. A run that is stopped does not wait for the answer. */
  ask(request: object): Promise<any> {
    const id = asked.length + 1;
    const answer = new Promise<any>((resolve, reject) => asked.push({ resolve, reject }));
    send({ id, of: this.id, ...request });
    return Promise.race([answer, this.stopped.then(() => { throw new Stopped(); })]);
  }

  async run(): Promise<void> {
    try {
      const body = await work(this);
      const reason = { kind: "completed", exit_code: null };
      send({ id: this.id, ok: { v: 1, reason, output: "text" }, body });
    } catch (error) {
      if (error instanceof Stopped) {
        const reason = { kind: "cancelled", by: "operator" };
        send({ id: this.id, ok: { v: 1, reason, output: "none" } });
      } else {
        send({ id: this.id, error: { code: 2, message: error instanceof Error ? error.message : String(error) } });
      }
    }
    runs.delete(this.id);
  }
}

const runs = new Map<number, Run>();
const asked: Asked[] = [];

/** Writes one line. Nothing else is printed on standard output; what `console.error` prints is logged. */
function send(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** Does what one line of the host asks. */
function hear(line: any): void {
  const { op, id, of } = line;
  if (op === undefined) {
    const { resolve, reject } = asked[id - 1];
    if (line.error) reject(new Error(line.error.message));
    else resolve(line.ok);
  } else if (op === "describe") {
    send({ id, ok: MANIFEST });
  } else if (op === "init" || (op === "runtime" && line.name === "typescript-agent")) {
    send({ id, ok: { v: 1 } });
  } else if (op === "start") {
    if (line.launch.v !== 1) throw new Error("a launch of another version");
    const run = new Run(id, line.launch);
    runs.set(id, run);
    run.run();
  } else if (op === "cancel" || op === "drop") {
    runs.get(of)?.stop();
  } else if (op === "call" && line.name === "letter" && runs.has(of)) {
    runs.get(of)?.letters.push(line.args.text);
    send({ id, ok: { v: 1 } });
  } else if (op === "shutdown") {
    for (const run of runs.values()) run.stop();
  } else if (id !== undefined) {
    send({ id, error: { code: 5, message: `unsupported operation \`${op}\`` } });
  }
}

// Lines end with a newline and with nothing else; `node:readline` would also split at U+2028, which may stand in a text.
// What has come of a line is joined once, at its end: a result of 100 MB comes in more than a thousand blocks.
const begun: string[] = [];
process.stdin.setEncoding("utf8");
for await (const block of process.stdin) {
  const lines = block.split("\n");
  const last = lines.pop() ?? "";
  if (lines.length > 0) lines[0] = begun.splice(0).join("") + lines[0];
  begun.push(last);
  for (const text of lines) {
    const line = JSON.parse(text);
    try {
      hear(line);
    } catch (error) {
      if (line.op !== undefined && line.id !== undefined) {
        send({ id: line.id, error: { code: 1, message: String(error) } });
      }
    }
  }
}
