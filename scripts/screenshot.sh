#!/usr/bin/env bash
# Makes docs/images/prove.png: the real output of `rtproof prove` on this machine, as a terminal
# shows it. Needs tmux, aha and chromium (Debian packages of these names). RTPROOF: a binary that is
# there already.
set -euo pipefail
cd "$(dirname "$0")/.."

[ -n "${RTPROOF:-}" ] || cargo build --locked --release --package rtproof
# What fits a screen: the answer, the latencies, the first causes.
LINES_SHOWN=34
work=$(mktemp -d)
trap 'tmux kill-session -t rtproof-shot 2>/dev/null || true; rm -rf "$work"' EXIT
binary=$(realpath "${RTPROOF:-target/release/rtproof}")
folder=$(dirname "$binary")

tmux new-session -d -s rtproof-shot -x 108 -y 200 -c "$work" \
    "PATH=$folder:\$PATH bash --norc -c \
    'rtproof prove --for 20s --budget 100us 2>err; touch done; sleep 60'"
until [ -e "$work/done" ]; do sleep 0.5; done
tmux capture-pane -e -p -t rtproof-shot | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' >"$work/out.ansi"

{
    echo '<!doctype html><meta charset=utf-8><style>body{margin:0;background:#11151c;color:#d5dae3;
font:15px/1.35 "DejaVu Sans Mono",monospace;padding:18px 22px;white-space:pre}</style>'
    printf '<span style="color:#8a93a3">$ rtproof prove --for 20s --budget 100us</span>\n'
    aha --no-header --black <"$work/out.ansi" | head -n "$LINES_SHOWN"
    echo "..."
} >"$work/out.html"
lines=$((LINES_SHOWN + 2))
mkdir -p docs/images
chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync --hide-scrollbars \
    --user-data-dir="$work/chromium" --window-size=1030,$((lines * 21 + 70)) \
    --screenshot="$PWD/docs/images/prove.png" "file://$work/out.html" 2>/dev/null
echo "docs/images/prove.png: $(stat -c %s docs/images/prove.png) bytes"
