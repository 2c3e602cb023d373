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

echo "== the demo task runs; start, two seconds, stop, quit"
printf 'start\nsleep 2\nstop\nquit\n' |
    "$target/release/msprof" --dynamic=on --output="$output" \
        --runtime-api=on --model-execution=on --aicpu=on \
        "$target/cann/mlp_task" --seconds=5 --pause-us=2000 --quiet >"$work/log" ||
    { status=$?; cat "$work/log"; exit "$status"; }
grep -v '^window ' "$work/log"

prof=$(sed -n 's/.*\(PROF_[^ ]*\).*/\1/p' "$work/log" | head -n 1)
echo
echo "== what the capture holds"
"$target/release/msprof" summary "$output/$prof"

echo
echo "== what the task itself counted in that window"
sed -n 's/^window //p' "$work/log" |
    python3 -c '
import json, sys
for line in sys.stdin:
    window = json.loads(line)
    for level, calls in window["api"].items():
        for name, count in calls.items():
            if count:
                print(f"{level:8} {name:24} {count:>9}")
'
