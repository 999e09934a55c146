#!/bin/sh
# Kills offshoot with signal 9 while its tree waits for the reset of a quota, goes on with the tree, and shows that no call was paid
# for twice. It needs offshoot (or its path in OFFSHOOT) and Python 3, and asks nothing outside of this machine.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
offshoot=${OFFSHOOT:-offshoot}
folder=$(mktemp -d)
cd "$folder"
# The user's own configuration says nothing about this example.
export XDG_CONFIG_HOME="$folder"

mkfifo said events
python3 "$here/service.py" 5 > said &
service=$!
trap 'kill $service 2> /dev/null || true; rm -rf "$folder"' EXIT
exec 3< said
read -r port <&3

cat > wall.toml << END
[runtimes.openai.options]
baseUrl = "http://127.0.0.1:$port/v1"
model = "example"
cost = "none"
# A service that asks for more than a second is a wall.
retries = { longestSeconds = 1 }
END
printf 'one\ntwo\nthree\nfour\nfive\n' > pieces

echo "A map of five pieces; the service refuses the third call for five seconds."
"$offshoot" --config wall.toml map --runtime openai --task "do it" --split lines:1 --max-concurrent 1 pieces > lost 2> progress &
tree=$!
: > log
while read -r word piece <&3; do
    echo "$word $piece" >> log
    [ "$word" = paid ] || break
done
# The wall is on record; now the supervisor is killed.
"$offshoot" events --follow last > events 2> lost &
grep -m 1 -o 'parked  .*' events
kill -9 "$tree"
wait "$tree" 2> /dev/null || true
echo "Killed. The tree as it is left:"
"$offshoot" tree last

echo "It goes on:"
"$offshoot" --config wall.toml -q resume last
kill "$service"
cat <&3 >> log
echo "What the service says:"
cat log
"$offshoot" audit last
[ "$(grep -c '^paid' log)" = 5 ]
[ -z "$(grep '^paid' log | sort | uniq -d)" ]
echo "Five pieces, five calls paid, none twice."
