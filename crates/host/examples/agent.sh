# An agent of the examples: its task is a number. It asks for two agents with the number below, and adds their answers; at 0 it asks
# its supervisor by MCP how deep it is, and counts as one.
read -r number
if [ "$number" -gt 0 ]; then
    for half in left right; do
        "$OFFSHOOT" spawn --label $half "$((number - 1))" >&2
    done
    "$OFFSHOOT" wait --merge sum
else
    "$OFFSHOOT" mcp <<'END' | grep -q '"depth\\*":' && echo 1
{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"sh","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sessions_status","arguments":{}}}
END
fi
