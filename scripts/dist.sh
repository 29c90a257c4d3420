#!/usr/bin/env bash
# `make dist`: one static binary with its man pages, completions and licences, as a folder and as an
# archive that is the same bytes for the same commit.
set -euo pipefail
cd "$(dirname "$0")/.."

triple=${TRIPLE:-x86_64-unknown-linux-gnu}
target=${CARGO_TARGET_DIR:-target}
version=$(sed -n 's/^version = "\(.*\)"/\1/p;T;q' Cargo.toml)
name=rtproof-$version-${triple%%-*}-linux
folder=dist/$name
rm -rf "$folder" "dist/$name.tar.gz"
mkdir -p "$folder"

flags="-Ctarget-feature=+crt-static"
# The archive does not tell where it was built.
flags+=" --remap-path-prefix=$HOME=/home --remap-path-prefix=$PWD=."
RUSTFLAGS=$flags cargo build --locked --profile dist --package rtproof --target "$triple"
cp "$target/$triple/dist/rtproof" "$folder/rtproof"

# A static executable needs no interpreter and names no library.
headers=$(LC_ALL=C readelf --wide --program-headers --dynamic "$folder/rtproof")
if grep -E 'INTERP|NEEDED' <<<"$headers"; then
    echo "dist: $folder/rtproof is not static" >&2
    exit 1
fi

cargo xtask dist-files "$folder"
scripts/cargo-tool.sh cargo-about generate --locked --manifest-path crates/rtproof/Cargo.toml \
    about.hbs >"$folder/THIRD-PARTY.md"
cp README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$folder/"

when=$(git log -1 --format=%ct 2>/dev/null || echo 0)
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$when" -C dist -cf - "$name" \
    | gzip -n -9 >"dist/$name.tar.gz"
(cd dist && sha256sum "$name/rtproof" "$name.tar.gz" >"$name.sha256")

echo "dist: $folder/rtproof is static, $(stat -c %s "$folder/rtproof") bytes"
echo "dist: dist/$name.tar.gz, $(stat -c %s "dist/$name.tar.gz") bytes"
