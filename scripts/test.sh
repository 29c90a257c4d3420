#!/usr/bin/env bash
# `make test`: every check and test, stage by stage. A stage that fails does not stop the others, so
# that one run tells everything. A stage that cannot run is a failure under CI=true.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

target=${CARGO_TARGET_DIR:-target}
[ "${CI:-}" = true ] && export CARGO_INCREMENTAL=0
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}

passed=0
failed=0
left_out=0
table=""

# stage NAME COMMAND...: runs a command and keeps the books. Exit code 3 means "cannot run here".
stage() {
    local name=$1 began=$SECONDS code=0 result
    shift
    echo "==> $name"
    "$@" </dev/null || code=$?
    case "$code:${CI:-}" in
        0:*) result=ok passed=$((passed + 1)) ;;
        3:true) result=FAILED failed=$((failed + 1)) ;;
        3:*) result="left out" left_out=$((left_out + 1)) ;;
        *) result=FAILED failed=$((failed + 1)) ;;
    esac
    local line
    line=$(printf '%-10s %-8s %5d s' "$name" "$result" $((SECONDS - began)))
    echo "<== $line"
    table+="$line"$'\n'
}

stage deps scripts/deps.sh
stage format cargo fmt --all --check
stage lint cargo clippy --quiet --locked --workspace --all-targets -- -D warnings
# The binary alone, without the features that the other packages of the workspace turn on.
stage binary cargo clippy --quiet --locked --package rtproof -- -D warnings
stage build cargo build --quiet --locked --workspace
stage tidy "$target/debug/xtask" tidy
stage deny scripts/cargo-tool.sh cargo-deny --locked check licenses bans sources
stage oldest "$target/debug/xtask" oldest-rust
stage docs env RUSTDOCFLAGS=-Dwarnings cargo doc --quiet --locked --workspace --no-deps
# Tests interrupt what they start: a shell's background job would have it ignore that.
stage test env --default-signal=INT,QUIT,HUP cargo test --locked --workspace --no-fail-fast
# Guests have limits of their own; this one is for what waits for the network.
stage lab timeout 1500 "$target/debug/rtproof-lab" run --tier 1

echo
printf '%s' "$table"
echo "stages: $passed passed, $failed failed, $left_out skipped"
[ "$failed" = 0 ]
