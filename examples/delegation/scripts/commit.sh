#!/bin/sh
# Commits all changes. The message is the task of the root, which every run of the tree finds in OFFSHOOT_TRACE.
set -eu
message=$(printf '%s' "$OFFSHOOT_TRACE" | sed -n 's/.*"rootUserRequest":"\([^"]*\)".*/\1/p')
git -C dotfiles add .
git -C dotfiles commit -q -m "$message"
echo COMMITTED
