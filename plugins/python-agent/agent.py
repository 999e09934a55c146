"""The runtime `python-agent` for offshoot: one JSON object a line, on standard input and standard output.

It says its task in upper case. Four tasks do something else: `wait` waits until it is stopped, `ask TEXT` answers with what a
child says of TEXT, `delegate TEXT` has the preferred agent that fits do TEXT, and `fail` fails. Change `work` until it does what
you want; the rest carries lines.
"""

import json
import queue
import sys
import threading

MANIFEST = {
    "v": 1,
    "name": "python-agent",
    "version": "0.1.0",
    "description": "says its task in upper case",
    "runtimes": [{
        "name": "python-agent",
        # "reported": a run tells what it costs. With "turns" it can go on after an answer.
        "abilities": {"cost": "reported", "turns": True},
    }],
}


def work(run):
    """One run: what it returns is its answer."""
    run.event(5, {"v": 1, "status": "started"})
    answer = turn(run, run.launch["task"])
    letters = 0
    while True:
        # The answer stands. The host says whether there is more to do: results of children, or letters.
        how = run.call("turn_ended", {"v": 1, "answer": answer, "lettersTaken": letters})
        if not how["go"]:
            return answer
        told = [how["results"]] if how.get("results") else []
        while not run.letters.empty():
            told.append(run.letters.get())
            letters += 1
        answer = turn(run, "\n".join(told))


def turn(run, prompt):
    """One turn of a run."""
    verb, _, rest = prompt.partition(" ")
    if verb == "wait":
        run.stopped.wait()
        raise Stopped
    if verb == "fail":
        raise RuntimeError(rest or "as it was asked to")
    if verb == "ask":
        asked = run.ask("spawn", request={"v": 1, "request": {"task": rest}})
        if "refusal" in asked:
            return asked["refusal"]["message"]
        ended = run.call("wait", {"v": 1, "runs": [asked["run"]], "mode": "all"})["ended"]
        return (ended[0]["data"] or {}).get("text", ended[0]["status"])
    if verb == "delegate":
        handed = run.call("delegate", {"v": 1, "request": {"task": rest, "type": "louder"}})
        if handed["status"] == "accepted":
            ended = run.call("wait", {"v": 1, "runs": [handed["run"]], "mode": "all"})["ended"]
            return (ended[0]["data"] or {}).get("text", ended[0]["status"])
        # No agent fits, or there can be no child: it does the task itself, and says when that is done.
        if "observation" in handed:
            run.call("observed", {"v": 1, "observation": handed["observation"], "success": True})
        return f"{rest.upper()} ({handed['reason']})"
    run.event(1, "saying it louder")
    # A tool that is used, with its input: shown, and kept in the record.
    run.event(2, {"v": 1, "name": "upper", "input": {"text": prompt}})
    # What was used so far, never less than before. Money is known, or a number of runs of which it is unknown.
    run.used += len(prompt.split())
    run.event(4, {
        "v": 1,
        "usage": {"input": run.used, "output": run.used, "cacheRead": 0, "cacheWrite": 0},
        "cost": {"knownUsd": run.used / 1000, "estimatedUsd": 0, "unknownRuns": 0},
    })
    return prompt.upper()


class Stopped(Exception):
    """The run was asked to end."""


class Run:
    """One run: what it was started with, and the ways to its host."""

    def __init__(self, id, launch):
        self.id, self.launch = id, launch
        self.stopped, self.letters, self.used = threading.Event(), queue.Queue(), 0

    def event(self, kind, payload):
        send(op="event", of=self.id, kind=kind, payload=payload)

    def call(self, name, args):
        return self.ask("call", name=name, args=args)

    def ask(self, op, **fields):
        """Asks the host something, and waits for its answer."""
        answer = queue.Queue()
        with lock:
            asked.append(answer)
            number = len(asked)
        send(id=number, op=op, of=self.id, **fields)
        answer = answer.get()
        if "error" in answer:
            raise Stopped if answer["error"]["code"] == 3 else RuntimeError(answer["error"]["message"])
        return answer["ok"]

    def run(self):
        try:
            answer = work(self)
            outcome = {"v": 1, "reason": {"kind": "completed", "exit_code": None}, "output": "text"}
            send(id=self.id, ok=outcome, body=answer)
        except Stopped:
            reason = {"kind": "cancelled", "by": "operator"}
            send(id=self.id, ok={"v": 1, "reason": reason, "output": "none"})
        except Exception as error:
            send(id=self.id, error={"code": 2, "message": str(error)})


runs, asked, lock = {}, [], threading.Lock()


def send(**line):
    """Writes one line. Nothing else is printed on standard output; what is printed on standard error is logged."""
    text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
    with lock:
        sys.stdout.buffer.write(text.encode() + b"\n")
        sys.stdout.buffer.flush()


def hear(line):
    """Does what one line of the host asks."""
    op, id, of = line.get("op"), line.get("id"), line.get("of")
    if op is None:
        asked[id - 1].put(line)
    elif op == "describe":
        send(id=id, ok=MANIFEST)
    elif op == "init":
        send(id=id, ok={"v": 1})
    elif op == "runtime" and line["name"] == "python-agent":
        send(id=id, ok={"v": 1})
    elif op == "start":
        if line["launch"].get("v") != 1:
            raise ValueError("a launch of another version")
        run = runs[id] = Run(id, line["launch"])
        threading.Thread(target=run.run, daemon=True).start()
    elif op in ("cancel", "drop"):
        if of in runs:
            runs[of].stopped.set()
    elif op == "call" and line["name"] == "letter" and of in runs:
        runs[of].letters.put(line["args"]["text"])
        send(id=id, ok={"v": 1})
    elif op == "shutdown":
        for run in list(runs.values()):
            run.stopped.set()
    elif id is not None:
        send(id=id, error={"code": 5, "message": f"unsupported operation `{op}`"})


if __name__ == "__main__":
    for text in sys.stdin.buffer:
        line = json.loads(text)
        try:
            hear(line)
        except Exception as error:
            if "op" in line and "id" in line:
                send(id=line["id"], error={"code": 1, "message": f"{type(error).__name__}: {error}"})
