#!/usr/bin/env bash
# cargo-tool.sh NAME [ARGUMENT...]: runs a tool from crates.io, built once and kept outside the
# tree. The versions stand here.
set -euo pipefail

declare -A versions=([cargo-deny]=0.20.2 [cargo-about]=0.9.3)
declare -A features=([cargo-about]="--features cli")
# cargo-about compares every licence text with all that are known.
declare -A optimisation=([cargo-deny]=0 [cargo-about]=1)
name=$1
shift
version=${versions[$name]}
root=$HOME/.cache/rtproof-cargo-tools/$name-$version
if [ ! -x "$root/bin/$name" ]; then
    echo "$name: building version $version into $root" >&2
    # shellcheck disable=SC2086
    if ! CARGO_PROFILE_DEV_OPT_LEVEL=${optimisation[$name]} CARGO_PROFILE_DEV_DEBUG=false \
        CARGO_TARGET_DIR=$HOME/.cache/rtproof-cargo-tools/target \
        cargo install --quiet --locked --profile dev --root "$root" ${features[$name]:-} \
        "$name@$version" >&2; then
        echo "$name: cargo install $name@$version failed: is crates.io reachable?" >&2
        [ "${CI:-}" = true ] && exit 1
        exit 3
    fi
fi
[ "${1:-}" = --only-install ] || exec "$root/bin/$name" "$@"
