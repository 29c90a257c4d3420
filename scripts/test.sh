#!/usr/bin/env bash
# `make test`: every check and test, stage by stage. What takes longer than a developer waits is in
# .ci/run: other processors, the oldest Rust, the pages of rustdoc, kills at every step.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
. scripts/stages.sh

target=${CARGO_TARGET_DIR:-target}
[ "${CI:-}" = true ] && export CARGO_INCREMENTAL=0
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}
# Tests interrupt what they start: a shell's background job would have it ignore that.
tests=(env --default-signal=INT,QUIT,HUP "$target/debug/xtask" test)
mkdir -p "$target"
: >"$target/tests.tsv"

# rustup installs the toolchain of the tree with the first call, and must not be called twice then.
cargo --version
# Building needs a C compiler alone: what the tests need is installed meanwhile.
if command -v cc >/dev/null; then
    begin deps scripts/deps.sh
else
    stage deps scripts/deps.sh
fi
stage format cargo fmt --all --check
# With the tests: their features are the only ones that anything is built with.
stage build cargo build --quiet --locked --workspace --all-targets
[ -z "${stages_pid[deps]:-}" ] || finish deps
stage tidy "$target/debug/xtask" tidy
stage deny scripts/cargo-tool.sh cargo-deny --locked check licenses bans sources
# Guests have limits of their own; this one is for what waits for the network.
# A guest at a time, as tests run beside; with what the tests run, as building anew takes minutes.
# .ci/run has the rest of tier 1.
begin lab env --default-signal=INT,QUIT,HUP timeout 1500 \
    "$target/debug/rtproof-lab" run --tier 1 --jobs 1 --programs "$target/debug" \
    kernel/prove/rt stall/interrupts-off/rt causes/daemon causes/hard-interrupt \
    topology/isolated tune/round-trip hostile/no-sys
stage test "${tests[@]}" --part together
stage doc cargo test --quiet --locked --workspace --doc
stage lint cargo clippy --quiet --locked --workspace --all-targets -- -D warnings
finish lab
# They need the machine for themselves.
stage alone "${tests[@]}" --part alone

echo
echo "the slowest tests, s:"
sort -rn "$target/tests.tsv" | head -20 | cut -f 1,2
stages_report
result=$?
# All tests; where none failed but a stage did, the stages that failed.
awk -F '\t' -v stages="$stages_failed" '{ passed += $3; failed += $4 } END {
    if (!failed) failed = stages
    print passed + 0 " passed, " failed " failed"
}' "$target/tests.tsv"
exit "$result"
