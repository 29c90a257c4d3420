#!/bin/sh
# Starts the program, measures its cycles with rtproof, looks for page faults of its loop, ends it.
# Then starts it under `rtproof run --rules`: its loop takes no page fault and blocks nowhere.
# Usage: test.sh PROGRAM. RTPROOF names another rtproof than that in PATH.
set -eu
program=$1
rtproof=${RTPROOF:-rtproof}

dir=$(mktemp -d) pid=
trap 'test -z "$pid" || kill "$pid" 2>/dev/null || :; rm -rf "$dir"' EXIT
fail() {
	echo "test: $*" >&2
	cat "$dir/out" >&2
	exit 1
}

# Starts a command in the background, and waits until the program is ready.
start() {
	"$@" >"$dir/out" 2>&1 &
	pid=$!
	tries=100
	until grep -q '^ready' "$dir/out"; do
		if grep -q ') Z ' "/proc/$pid/stat"; then
			wait "$pid" && status=0 || status=$?
			pid=
			return 1
		fi
		test $((tries -= 1)) -gt 0 || fail "$program is not ready after 10 s"
		sleep 0.1
	done
}

end() {
	kill -TERM "$pid"
	wait "$pid" && status=0 || status=$?
	pid=
}

start "$program" || fail "$program ended with status $status before it was ready"

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
test "$before" = "$(faults)" || fail "the loop took page faults: first $before, then $(faults)"
end
test "$status" -eq 0 || fail "it ended with status $status after SIGTERM, 0 expected"
grep '^total' "$dir/out" || fail "it did not say its total"

# Not measured above, as observing a call makes it longer. The loop takes its class itself: other
# threads stay ordinary. It stays on one CPU; SCHED_DEADLINE may not be bound, and may move.
if ! command -v "$rtproof" >/dev/null; then
	echo "test: left out: rtproof is not in PATH; passed, without its rules"
	exit
fi
cpus= may_move=migration
if ! grep -q '^ready.*SCHED_DEADLINE' "$dir/out"; then
	may_move=
	allowed=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
	case $allowed in *[-,]*) cpus="--cpus ${allowed##*[-,]}" ;; esac
fi
# shellcheck disable=SC2086 # An option and its value, or nothing.
if start "$rtproof" run --policy other $cpus --place affinity --tune none --no-trace \
	--rules --rules-after mark --junit "$dir/rules.xml" -- "$program"; then
	sleep 2
	end
fi
broken() { sed -n 's/.*name="\([a-z-]*\)"><failure.*/\1/p' "$dir/rules.xml"; }
case $status in
0) sed -n '/^Rules/,$p' "$dir/out" ;;
2) test "$(broken)" = "$may_move" || fail "its loop broke rules"
	echo "test: the loop moves between CPUs; only a partition of its own prevents that" ;;
3 | 64 | 125) cat "$dir/out"
	echo "test: left out, see above; passed, without its rules" && exit ;;
*) fail "under \`rtproof run\` it ended with status $status, 0 expected" ;;
esac
echo "test: passed"
