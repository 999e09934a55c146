#!/bin/sh
# Three validators at the same time; what they have validated is applied only if all of them succeeded.
set -eu

started=
hand_on() { # under this label, this task: to the preferred agent whose words it has
    run=$("$OFFSHOOT" -q delegate --label "$1" "$2")
    if [ "$run" = execute_directly ]; then
        echo "no agent takes the task: $2" >&2
        exit 1
    fi
    started="$started $1=$run"
}

hand_on scan "scan the change for secrets"
hand_on test "test that zsh loads without errors"
hand_on drift "check the templates for drift"

# The gate: each of the three is asked, also after one that failed.
failed=
drift=
for child in $started; do
    label=${child%%=*}
    if answer=$("$OFFSHOOT" -q wait "${child#*=}"); then
        echo "$label: $answer"
    else
        failed="$failed $label"
    fi
    if [ "$label" = drift ]; then drift=$answer; fi
done

if [ -z "$failed" ] && [ "$drift" = DRIFT ]; then
    started=
    hand_on sync "sync the templates after drift"
    answer=$("$OFFSHOOT" -q wait "${started#*=}") && echo "sync: $answer" || failed=" sync"
fi

"$OFFSHOOT" tree
if [ -n "$failed" ]; then
    echo "not applied, because this failed:$failed" >&2
    exit 1
fi
