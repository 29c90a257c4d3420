#!/bin/sh
# Starts the program, measures its cycles with rtproof, looks for page faults of its loop, ends it.
# Usage: test.sh PROGRAM. RTPROOF names another rtproof than that in PATH.
set -eu
program=$1
rtproof=${RTPROOF:-rtproof}

dir=$(mktemp -d)
pid=
trap 'test -z "$pid" || kill "$pid" 2>/dev/null || :; rm -rf "$dir"' EXIT
fail() {
	echo "test: $*" >&2
	cat "$dir/out" >&2
	exit 1
}

"$program" >"$dir/out" 2>&1 &
pid=$!
tries=0
until grep -q '^ready' "$dir/out"; do
	if grep -q ') Z ' "/proc/$pid/stat"; then
		wait "$pid" && status=0 || status=$?
		pid=
		fail "$program ended with status $status before it was ready"
	fi
	tries=$((tries + 1))
	test "$tries" -lt 100 || fail "$program is not ready after 10 s"
	sleep 0.1
done

# Page faults of the thread that is SCHED_FIFO (1) or SCHED_DEADLINE (6), see proc_pid_stat(5).
faults() {
	cat "/proc/$pid/task/"*/stat | awk '$41 == 1 || $41 == 6 { print $10 + $12 }'
}
before=$(faults)
test -n "$before" || fail "no thread of $program is real-time"
if command -v "$rtproof" >/dev/null; then
	(cd "$dir" && "$rtproof" measure --workload "marks:$pid" --for 2s --no-trace -o measured) ||
		fail "its cycles could not be measured"
else
	echo "test: left out: rtproof is not in PATH, so that its cycles are not measured"
	sleep 2
fi
after=$(faults)
test "$before" = "$after" || fail "the loop took page faults: $before at its start, then $after"

kill -TERM "$pid"
wait "$pid" && status=0 || status=$?
pid=
test "$status" -eq 0 || fail "it ended with status $status after SIGTERM, 0 expected"
grep '^total' "$dir/out" || fail "it did not say its total"
echo "test: passed"
