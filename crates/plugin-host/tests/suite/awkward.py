"""A plugin that does whatever a program can do wrong: the task says what."""

import json
import os
import sys
import time


def send(**line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def start(id, task):
    if task != "silent":
        send(op="event", of=id, kind=5, payload={"v": 1, "status": "started"})
    if task == "dies":
        print("I am about to end", file=sys.stderr, flush=True)
        os._exit(3)
    elif task == "killed":
        os.kill(os.getpid(), 9)
    elif task == "garbage":
        print("Traceback (most recent call last)", flush=True)
    elif task == "not UTF-8":
        sys.stdout.buffer.write(b"\xff\xfe\n")
        sys.stdout.flush()
    elif task == "no body":
        send(id=id, ok={"v": 1, "reason": {"kind": "completed", "exit_code": None}, "output": "bytes"}, body="?")
    elif task == "no outcome":
        send(id=id, ok={"v": 1})
    elif task == "endless":
        while True:
            sys.stdout.write("x" * 1_000_000)
    elif task == "asks for ever":
        while True:
            send(id=1, op="call", of=id, name="nothing", args={"v": 1})
    elif task == "ignores":
        pass
    elif task == "deaf":
        time.sleep(3600)
    elif task == "offshoot":
        send(id=1, op="call", name="offshoot", args={"v": 1})
        heard = json.loads(sys.stdin.readline())
        ticket = os.environ.get("OFFSHOOT_TICKET", "no ticket")
        answer(id, f'{heard["ok"]["path"]} {os.environ["OFFSHOOT"]} {ticket}')
    elif task == "pid":
        answer(id, str(os.getpid()))
    elif task == "strange":
        send(op="dance", of=id)
        send(id=99, op="dance", of=id)
        send(id=12345, ok={"v": 1})
        send(op="event", of=id, kind=77, payload={"v": 1})
        send(op="event", of=4711, kind=1, payload="of no run")
        send(op="event", kind=1, payload="of no run")
        print(file=sys.stdout, flush=True)
        heard = json.loads(sys.stdin.readline())
        answer(id, heard["error"]["message"])
        send(op="event", of=id, kind=1, payload="after its end")
    else:
        answer(id, task)


def answer(id, text):
    send(id=id, ok={"v": 1, "reason": {"kind": "completed", "exit_code": None}, "output": "text"}, body=text)


for line in sys.stdin:
    line = json.loads(line)
    op, id = line.get("op"), line.get("id")
    if op == "describe":
        abilities = {"cost": "none"}
        send(id=id, ok={"v": 1, "name": "awkward", "version": "0.1.0",
                        "runtimes": [{"name": "awkward", "abilities": abilities,
                                      "configSchema": {"properties": {"turns": {"type": "boolean"}}}}],
                        "merges": [{"name": "longest"},
                                   {"name": "numbers", "configSchema": {"required": ["base"]}}]})
    elif op == "start":
        start(id, line["launch"]["task"])
    elif op == "init" and line["config"].get("refuse"):
        send(id=id, error={"code": 1, "message": "no such settings",
                             "details": {"v": 1, "hint": "set `refuse` to false"}})
    elif op == "runtime" and "turns" in line["config"]:
        send(id=id, ok={"v": 1, "abilities": {"cost": "reported", "turns": line["config"]["turns"]}})
    elif op in ("init", "runtime", "merge"):
        send(id=id, ok={"v": 1})
    elif op == "begin":
        if line["params"] == "refuse":
            send(id=id, error={"code": 1, "message": "no such parameter"})
            continue
        results, early = {}, line["params"] == "early"
        send(id=id, ok={"v": 1})
    elif op == "push":
        if line["result"] == "die":
            os._exit(4)
        results[line["index"]] = line["result"]
        send(id=id, ok={"v": 1, "answer": line["result"]} if early else {"v": 1})
    elif op == "finish":
        longest = max((results[index] for index in sorted(results)), key=len, default=None)
        send(id=id, ok=longest)
