# Stages for scripts/test.sh and .ci/run; to be sourced. A stage that fails does not stop the
# others, so that one run reports everything. Exit code 3 means "cannot run here": a failure under
# CI=true.

stages_passed=0
stages_failed=0
stages_left_out=0
stages_table=""
declare -A stages_pid=()
stages_logs=$(mktemp -d)
trap 'rm -rf "$stages_logs"' EXIT

# stage NAME COMMAND...: runs a command and keeps the books.
stage() {
    local name=$1 began=$SECONDS code=0
    shift
    echo "==> $name"
    "$@" </dev/null || code=$?
    stage_ended "$name" "$code" $((SECONDS - began))
}

# begin NAME COMMAND...: starts a stage beside the next ones, until `finish NAME`.
begin() {
    local name=$1
    shift
    echo "==> $name, beside the next stages"
    (
        began=$SECONDS code=0
        "$@" </dev/null >"$stages_logs/$name" 2>&1 || code=$?
        echo "$code $((SECONDS - began))" >"$stages_logs/$name.end"
    ) &
    stages_pid[$name]=$!
}

# finish NAME: waits for a stage that was begun, and shows what it printed.
finish() {
    local name=$1 code seconds
    wait "${stages_pid[$name]}"
    echo "==> $name, begun before"
    cat "$stages_logs/$name"
    read -r code seconds <"$stages_logs/$name.end"
    stage_ended "$name" "$code" "$seconds"
}

stage_ended() {
    local name=$1 code=$2 seconds=$3 result line
    case "$code:${CI:-}" in
        0:*) result=ok stages_passed=$((stages_passed + 1)) ;;
        3:true) result=FAILED stages_failed=$((stages_failed + 1)) ;;
        3:*) result="left out" stages_left_out=$((stages_left_out + 1)) ;;
        *) result=FAILED stages_failed=$((stages_failed + 1)) ;;
    esac
    line=$(printf '%-10s %-8s %5d s' "$name" "$result" "$seconds")
    echo "<== $line"
    stages_table+="$line"$'\n'
}

# Prints the stages with their times. Fails if one did.
stages_report() {
    printf '\n%s' "$stages_table"
    echo "stages: $stages_passed passed, $stages_failed failed, $stages_left_out skipped"
    echo "all: $SECONDS s"
    [ "$stages_failed" = 0 ]
}
