"""A chat endpoint on loopback that refuses the third call for a few seconds, as a service does when a quota is used up.

It prints its port, then a line for each call: `paid TEXT` for one that it answers, `wall TEXT` for one that it refuses.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECONDS = int(sys.argv[1])
calls = 0


class Service(BaseHTTPRequestHandler):
    def do_POST(self):
        global calls
        calls += 1
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = body["messages"][-1]["content"]
        text = text if isinstance(text, str) else text[-1]["text"]
        word = text.split()[-1]
        if calls == 3:
            say("wall", word)
            error = {"error": {"type": "insufficient_quota", "message": "the quota is used up"}}
            return self.answer(429, error, {"Content-Type": "application/json", "Retry-After": str(SECONDS)})
        say("paid", word)
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        delta = {"role": "assistant", "content": f"{word} is done"}
        choice = {"index": 0, "finish_reason": "stop", "delta": delta}
        chunk = {"id": "1", "object": "chat.completion.chunk", "choices": [choice], "usage": usage}
        events = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"
        self.answer(200, events, {"Content-Type": "text/event-stream"})

    def answer(self, status, body, headers):
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words):
        pass


def say(*words):
    print(*words, flush=True)


server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
say(server.server_port)
server.serve_forever()
