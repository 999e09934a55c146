#!/bin/sh
# Runs the example at the same time and one after another, with validators that take a second, and prints the time of both.
set -eu

# Each program of a validator begins a second later.
slow='"sh", "-c", "sleep 1; exec sh \\"$0\\"", "scripts/\1.sh"'
sed -E "s#\"sh\", \"scripts/(scan|test|sync).sh\"#$slow#" team.toml > slow.toml

for limit in 8 1; do
    sh prepare.sh
    offshoot -q run --config slow.toml --agent chezmoi-workflow --max-concurrent $limit "enable parallel loading" > /dev/null
    printf 'at most %s at once: ' $limit
    offshoot show last --json | sed -n 's/.*"executionTimeMs": \([0-9]*\).*/\1 ms/p' | head -1
    offshoot stats last | grep '^at once'
done
