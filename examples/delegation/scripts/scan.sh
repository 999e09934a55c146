#!/bin/sh
# Answers SAFE, or fails with the lines that look like secrets.
if grep -niE '(password|secret|token) *=' dotfiles/zshrc >&2; then
    exit 1
fi
echo SAFE
