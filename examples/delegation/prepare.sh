#!/bin/sh
# Makes the repository `dotfiles` anew, with a change that its template does not have yet.
set -eu

rm -rf dotfiles
git init -q dotfiles
git -C dotfiles config user.name "an example"
git -C dotfiles config user.email example@localhost
mkdir dotfiles/templates
echo 'load_completions' > dotfiles/zshrc
cp dotfiles/zshrc dotfiles/templates/zshrc
git -C dotfiles add .
git -C dotfiles commit -q -m "the first version"
echo 'load_completions &' > dotfiles/zshrc
