#!/bin/sh
# Counts the files and lines that git tracks in a directory, by a child of its own for every subdirectory.
#
# The task is the directory. The answer is two numbers: files and lines. Where no child is granted, because the tree is
# as deep or as large as it may be, the subdirectory is counted here.
set -eu

directory=${OFFSHOOT_TASK%/}
list=$(git ls-files -- "$directory")
# Where in each name the part below the directory begins.
case $directory in
    .) start=1 ;;
    *) start=$((${#directory} + 2)) ;;
esac

# Names of files that stand in the directory itself, and names of the directories below it.
files=$(printf '%s\n' "$list" | awk -v start=$start 'NF && !index(substr($0, start), "/")')
below=$(printf '%s\n' "$list" | awk -v start=$start '
    NF && (end = index(substr($0, start), "/")) { print substr($0, 1, start + end - 2) }' | sort -u)

count() { # of the files that are named on standard input: how many, and how many lines
    tr '\n' '\0' | xargs -0 -r cat -- | wc -l
}

lines=$(printf '%s\n' "$files" | grep . | count || true)
number=$(printf '%s\n' "$files" | grep -c . || true)

for child in $below; do
    if ! "$OFFSHOOT" -q spawn --label "${child##*/}" "$child" -- sh "$0" >/dev/null 2>&1; then
        deeper=$(git ls-files -- "$child")
        number=$((number + $(printf '%s\n' "$deeper" | grep -c .)))
        lines=$((lines + $(printf '%s\n' "$deeper" | count)))
    fi
done

# A child that failed fails this one too: a count that lacks a part is no count.
answers=$("$OFFSHOOT" wait)
printf '%s\n' "$number $lines" "$answers" | awk '{ files += $1; lines += $2 } END { print files, lines }'
