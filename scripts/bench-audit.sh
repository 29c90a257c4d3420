#!/usr/bin/env bash
# Runs the audit benchmark with its peers: rtcqs from PyPI in a virtual environment, and TuneD from
# Debian in a folder of its own with /proc and /sys read-only, so that its daemon, which applies a
# profile when it starts, changes nothing. All of it is in a cache outside the tree; TuneD needs
# root and mmdebstrap and is left out without them.
#
# bench-audit.sh BENCH-BINARY ARGUMENTS...
set -euo pipefail

cache=${RTPROOF_BENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rtproof-bench}
mkdir -p "$cache"

if [ ! -x "$cache/rtcqs/bin/rtcqs" ]; then
    echo "bench: installing rtcqs from PyPI" >&2
    if ! { python3 -m venv "$cache/rtcqs" && "$cache/rtcqs/bin/pip" -q install rtcqs; } >&2; then
        echo "bench: rtcqs is left out: install python3-venv, and see above" >&2
        rm -rf "$cache/rtcqs"
    fi
fi

tuned=$cache/tuned
if [ ! -e "$tuned/made" ]; then
    if [ "$(id -u)" = 0 ] && command -v mmdebstrap >/dev/null; then
        echo "bench: installing TuneD into $tuned" >&2
        rm -rf "$tuned"
        mmdebstrap --quiet --variant=apt --include=tuned,dbus bookworm "$tuned" >&2 &&
            touch "$tuned/made"
    else
        echo "bench: TuneD is left out: it needs root and mmdebstrap" >&2
    fi
fi

export RTPROOF_BENCH_RTCQS=$cache/rtcqs/bin/rtcqs
if [ ! -e "$tuned/made" ]; then
    exec "$@"
fi
export RTPROOF_BENCH_TUNED=$tuned
# The mounts end with this namespace, the daemons with this script.
# shellcheck disable=SC2016
exec unshare --mount bash -euc '
    root=$RTPROOF_BENCH_TUNED
    for folder in proc sys; do
        mount --bind "/$folder" "$root/$folder"
        mount -o remount,ro,bind "$root/$folder"
    done
    mount --rbind /dev "$root/dev"
    mount -t tmpfs none "$root/run"
    mkdir -p "$root/run/dbus" "$root/run/tuned"
    echo latency-performance >"$root/etc/tuned/active_profile"
    echo manual >"$root/etc/tuned/profile_mode"
    setpriv --pdeathsig KILL chroot "$root" dbus-daemon --system --nofork --nopidfile &
    bus=$!
    sleep 0.5
    setpriv --pdeathsig KILL chroot "$root" tuned >/dev/null 2>&1 &
    daemon=$!
    trap "kill $daemon $bus 2>/dev/null || true" EXIT
    for _ in $(seq 50); do
        chroot "$root" tuned-adm active 2>/dev/null | grep -q latency-performance && break
        sleep 0.2
    done
    "$@"
' bash "$@"
