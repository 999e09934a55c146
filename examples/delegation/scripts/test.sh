#!/bin/sh
# Answers PASS if the file can be parsed; the errors of the shell say where it cannot.
set -eu
sh -n dotfiles/zshrc
echo PASS
