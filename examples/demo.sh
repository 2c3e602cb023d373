#!/bin/sh
# The main job from end to end: starts the demo AI task under the agent, captures two seconds of it on
# command, and shows what the PROF_XXX directory holds. Run it by `make demo`, which builds first.
set -eu

target=${TARGET:-target}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
output=$target/demo-output
# Short, and nobody else's: a home directory may hold sockets of other tasks.
export MSPROF_AGENT_SOCKET_DIR="$work"
# Two devices whose AICPU sends records through the driver, as tests/cann/hal.h says.
export STANDIN_HAL="$target/cann/libascend_hal.so"
export STANDIN_HAL_DEVICES=0,1 STANDIN_HAL_RATE=500 STANDIN_HAL_TYPES=0,1,3

echo "== the demo task runs under the agent: start, two seconds, stop, quit"
status=0
printf 'start\nsleep 2\nstop\nquit\n' |
    "$target/release/msprof" --dynamic=on --output="$output" \
        --runtime-api=on --model-execution=on --aicpu=on \
        "$target/cann/mlp_task" --seconds=8 --pause-us=2000 --device=0,1 >"$work/log" || status=$?
# The task prints its own counts as one long line of JSON; they come below.
grep -v '^window ' "$work/log" || true
[ "$status" = 0 ] || exit "$status"

echo
echo "== what the task itself counted in that window"
sed -n 's/^window //p' "$work/log" | python3 -c '
import json, sys

window = json.loads(sys.stdin.readline())
for level, calls in window["api"].items():
    counts = "  ".join(f"{name} {count}" for name, count in calls.items() if count)
    print(f"{level:8} {counts}")
'

echo
echo "== what the capture holds"
prof=$(sed -n 's/.*\(PROF_[^ ]*\).*/\1/p' "$work/log" | head -n 1)
"$target/release/msprof" summary "$output/$prof"

echo
echo "== the export, and the picture"
"$target/release/msprof" --export=on --output="$output/$prof"
"$target/release/msprof" view "$output/$prof"
