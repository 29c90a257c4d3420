#!/usr/bin/env bash
# Makes the pictures of the README: the real output of `rtproof prove` and `rtproof watch` on this
# machine, as a terminal shows it. Needs tmux, aha and chromium (Debian packages of these names).
# RTPROOF: a binary that is there already.
set -euo pipefail
cd "$(dirname "$0")/.."

[ -n "${RTPROOF:-}" ] || cargo build --locked --release --package rtproof
work=$(mktemp -d)
trap 'tmux kill-session -t rtproof-shot 2>/dev/null || true; rm -rf "$work"' EXIT
binary=$(realpath "${RTPROOF:-target/release/rtproof}")
folder=$(dirname "$binary")

# Runs a command in a terminal of so many columns and rows; what it shows after `wait`.
shot() { # columns rows wait command
    tmux new-session -d -s rtproof-shot -x "$1" -y "$2" -c "$work" \
        "PATH=$folder:\$PATH bash --norc -c 'rm -f done; $4 2>err; touch done; sleep 60'"
    eval "$3"
    tmux capture-pane -e -p -t rtproof-shot |
        sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' >"$work/out.ansi"
    tmux kill-session -t rtproof-shot
    sleep 1
}

# Draws the first lines of it, below the command, as a picture.
draw() { # name command lines width
    {
        echo '<!doctype html><meta charset=utf-8><style>'
        echo 'body{margin:0;background:#11151c;color:#d5dae3;padding:18px 22px;white-space:pre;'
        echo 'font:15px/1.35 "DejaVu Sans Mono",monospace}</style>'
        printf '<span style="color:#8a93a3">$ %s</span>\n' "$2"
        aha --no-header --black <"$work/out.ansi" | head -n "$3"
    } >"$work/out.html"
    chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync \
        --hide-scrollbars --user-data-dir="$work/chromium" \
        --window-size="$4,$((($3 + 1) * 20 + 40))" \
        --screenshot="$PWD/docs/images/$1.png" "file://$work/out.html" 2>/dev/null
    echo "docs/images/$1.png: $(stat -c %s "docs/images/$1.png") bytes"
}

mkdir -p docs/images
prove='rtproof prove --for 20s --budget 100us'
# What fits a screen: the answer, the latencies, the first causes.
shot 108 200 'until [ -e "$work/done" ]; do sleep 0.5; done' "$prove"
draw prove "$prove" 32 1030
watch='rtproof watch --measure --cpus 1 --load cpu+net --budget 100us'
shot 108 36 'sleep 45' "$watch"
draw watch "$watch" 36 1030
