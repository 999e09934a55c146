"""The client library for Python, driven by a plan: `python client.py PLAN`.

PLAN is JSON; crate page and README say what stands in it. What came of each step is printed as one JSON document at
the end.
"""

import functools
import json
import os
import re
import sys

import anyio
from mcp import Client, MCPError, StdioServerParameters

plan = json.loads(sys.argv[1])
answers = []


async def main():
    command, *args = plan["server"]
    # Without `env` the server would be handed a few variables, and neither socket nor ticket.
    server = StdioServerParameters(command=command, args=args, env=dict(os.environ))
    async with Client(server, mode=plan.get("mode", "auto")) as client:
        for step in plan["steps"]:
            answers.append(await (call(client, step) if "tool" in step else listed(client)))
        report = {
            "protocol": client.protocol_version,
            "server": client.server_info and client.server_info.model_dump(exclude_none=True),
            "instructions": client.instructions,
            "answers": answers,
        }
    print(json.dumps(report))


async def listed(client):
    return (await client.list_tools()).model_dump(mode="json", by_alias=True, exclude_none=True)


async def call(client, step):
    told = []
    with anyio.CancelScope() as scope:

        async def hear(progress, total, message):
            told.append({"progress": progress, "message": message})
            if step.get("cancel"):
                scope.cancel()

        listens = step.get("progress") or step.get("cancel")
        try:
            result = await client.call_tool(
                step["tool"],
                filled(step.get("arguments", {})),
                progress_callback=hear if listens else None,
            )
        except MCPError as error:
            return {"error": {"code": error.code, "message": error.message}, "progress": told}
        texts = [block.text for block in result.content]
        structured = result.structured_content
        return {"structured": structured, "text": texts, "isError": result.is_error, "progress": told}
    return {"cancelled": True, "progress": told}


def filled(value):
    """ "$2.runId" stands for what the step with that number answered."""
    if isinstance(value, list):
        return [filled(inner) for inner in value]
    if isinstance(value, dict):
        return {name: filled(inner) for name, inner in value.items()}
    found = isinstance(value, str) and re.fullmatch(r"\$(\d+)\.(.+)", value)
    if not found:
        return value
    of = answers[int(found[1])]["structured"]
    step_into = lambda at, name: at[int(name)] if isinstance(at, list) else at[name]
    return functools.reduce(step_into, found[2].split("."), of)


anyio.run(main)
