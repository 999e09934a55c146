#!/bin/sh
# Compares the template with the file. Asked to sync, copies the file and has that committed.
set -eu

if [ ! -f dotfiles/templates/zshrc ]; then
    echo "there is no template" >&2
    exit 1
fi
if cmp -s dotfiles/zshrc dotfiles/templates/zshrc; then
    echo "IN SYNC"
    exit
fi
case $OFFSHOOT_TASK in
    check*) echo DRIFT ;;
    *)
        cp dotfiles/zshrc dotfiles/templates/zshrc
        answer=$("$OFFSHOOT" -q delegate --wait --label commit "commit the synced templates")
        # Where no child is granted, because the tree is as deep as it may be, the work is done here.
        if [ "$answer" = execute_directly ]; then answer=$(sh scripts/commit.sh); fi
        echo "$answer"
        ;;
esac
