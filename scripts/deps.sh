#!/usr/bin/env bash
# Makes sure that the programs which the tests run are there. As root on Debian it installs what is
# missing; otherwise it says what to install. Missing programs are a failure under CI=true, and end
# with 3 elsewhere: the tests that need them are then left out and say so.
#
# deps.sh            what `make test` needs
# deps.sh lab-all    and what tiers 2 and 3 of the lab and the fuzz targets need
# deps.sh kernels    and what the tests need that build kernels from Debian's source
set -euo pipefail

# Program and the Debian package that has it.
programs=(
    "ansible-playbook ansible-core"
    "bc bc"
    "bison bison"
    "cc gcc"
    "flex flex"
    "git git"
    "grub-script-check grub-common"
    "chromium chromium"
    "cyclictest rt-tests"
    "depmod kmod"
    "jitterdebugger jitterdebugger"
    "make make"
    "patch patch"
    "perl perl"
    "python3 python3"
    "qemu-system-aarch64 qemu-system-arm"
    "qemu-system-x86_64 qemu-system-x86"
    "setpriv util-linux"
    "sqlite3 sqlite3"
    "strace strace"
    "stress-ng stress-ng"
    "systemd-analyze systemd"
    "systemd-tmpfiles systemd"
    "tmux tmux"
    "trace-cmd trace-cmd"
    "xz xz-utils"
    "zstd zstd"
)
mode=${1:-}
if [ "$mode" = lab-all ] || [ "$mode" = kernels ]; then
    programs+=(
        "bzip2 bzip2"
        "c++ g++"
        "dtc device-tree-compiler"
        "iasl acpica-tools"
        "mke2fs e2fsprogs"
        "mmdebstrap mmdebstrap"
        "qemu-img qemu-utils"
        "rtla rtla"
        "sfdisk fdisk"
    )
fi

if [ "$mode" = kernels ]; then
    # What a kernel's own Debian packages are made with.
    programs+=(
        "cpio cpio"
        "dh debhelper"
        "dpkg-buildpackage dpkg-dev"
        "rsync rsync"
    )
fi

# mke2fs and sfdisk are where users seldom look.
PATH=$PATH:/usr/sbin:/sbin

missing() {
    local entry
    for entry in "${programs[@]}"; do
        command -v "${entry%% *}" >/dev/null || echo "${entry##* }"
    done
    # The static binary links with it.
    if command -v cc >/dev/null && [ "$(cc -print-file-name=libc.a)" = libc.a ]; then
        echo libc6-dev
    fi
    if [ "$mode" = kernels ]; then
        [ -e /usr/src/linux-source-6.12.tar.xz ] || echo linux-source-6.12
        [ -e /usr/include/gelf.h ] || echo libelf-dev
    fi
    # The lab fetches kernels with apt's own downloader and checks Debian's signatures.
    if [ ! -e /usr/share/keyrings/debian-archive-keyring.gpg ]; then
        echo debian-archive-keyring
    fi
    # Perfetto's own code lives in an environment of its own.
    if command -v python3 >/dev/null && ! python3 -c 'import ensurepip' 2>/dev/null; then
        echo python3-venv
    fi
    # A page without a font has no text to measure.
    if [ -z "$(find /usr/share/fonts -name '*.ttf' -print -quit 2>/dev/null)" ]; then
        echo fonts-dejavu-core
    fi
}

if ! command -v cargo >/dev/null; then
    echo "deps: no cargo: install Rust, see https://rustup.rs" >&2
    exit 1
fi

mapfile -t wanted < <(missing)
if [ "${#wanted[@]}" -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "deps: installing ${wanted[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt=(apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -q -y)
    # A third-party archive that does not answer is not our concern; the install tells.
    "${apt[@]}" update || true
    "${apt[@]}" install --no-install-recommends "${wanted[@]}" || true
    hash -r
    mapfile -t wanted < <(missing)
fi

if [ "${#wanted[@]}" -gt 0 ]; then
    echo "deps: missing; install with: apt-get install ${wanted[*]}" >&2
    [ "${CI:-}" = true ] && exit 1
    exit 3
fi
# Kernel events: systemd mounts this when somebody looks at it, another init does not.
if [ "$(id -u)" = 0 ] && [ -d /sys/kernel/tracing ] && [ ! -e /sys/kernel/tracing/instances ]; then
    echo "deps: mounting tracefs at /sys/kernel/tracing"
    mount -t tracefs tracefs /sys/kernel/tracing || true
fi
# bootctl, which reads our entries, comes with a package that makes systemd-boot the boot loader of
# the machine when it is installed: only the program is taken, and systemd's library.
bootctl=$HOME/.cache/rtproof-bootctl
if ! command -v bootctl >/dev/null && ! "$bootctl/bin/bootctl" --version >/dev/null 2>&1; then
    echo "deps: unpacking bootctl into $bootctl"
    rm -rf "$bootctl"
    mkdir -p "$bootctl/bin"
    version=$(dpkg-query -W -f '${Version}' systemd 2>/dev/null || true)
    (
        cd "$bootctl"
        for package in systemd-boot-tools systemd-boot; do
            apt-get -q download "$package=$version" || apt-get -q download "$package" || continue
        done
        apt-get -q download libsystemd-shared || true
        for package in ./*.deb; do dpkg -x "$package" .; done
        rm -f ./*.deb
    ) >/dev/null 2>&1 || true
    cat >"$bootctl/bin/bootctl" <<'END'
#!/bin/sh
# Its own library first: it has to be of the same version.
top=$(dirname "$0")/..
for folder in "$top"/usr/lib/*/systemd "$top"/lib/*/systemd; do
    libraries=${libraries:-}${libraries:+:}$folder
done
LD_LIBRARY_PATH=$libraries exec "$top/usr/bin/bootctl" "$@"
END
    chmod 755 "$bootctl/bin/bootctl"
    if ! "$bootctl/bin/bootctl" --version >/dev/null 2>&1; then
        rm -rf "$bootctl"
        echo "deps: no bootctl: apt found no package systemd-boot that runs here" >&2
        [ "${CI:-}" = true ] && exit 1
        exit 3
    fi
fi
# Perfetto's generated code, which reads what we write: kept between runs.
perfetto=$HOME/.cache/rtproof-perfetto
perfetto_version=0.59.1
if [ "$(cat "$perfetto/version" 2>/dev/null)" != "$perfetto_version" ]; then
    echo "deps: installing perfetto $perfetto_version into $perfetto"
    if python3 -m venv --clear "$perfetto" &&
        "$perfetto/bin/pip" install --quiet --disable-pip-version-check \
            "perfetto==$perfetto_version"; then
        echo "$perfetto_version" >"$perfetto/version"
    else
        rm -rf "$perfetto"
        echo "deps: no perfetto $perfetto_version: pip found no Python package index" >&2
        [ "${CI:-}" = true ] && exit 1
        exit 3
    fi
fi
# Programs that read what `rtproof tune export` writes. Unpacked, not installed: tuned's package
# would start a daemon that tunes this machine, and nobody asked for GRUB.
tools=$HOME/.cache/rtproof-export-tools
tools_version=1
if [ "$(cat "$tools/version" 2>/dev/null)" != "$tools_version" ] &&
    command -v dpkg-deb >/dev/null; then
    echo "deps: unpacking tuned, grub-script-check and the kernel's conf into $tools"
    rm -rf "$tools"
    mkdir -p "$tools/debs"
    kbuild=""
    fetch() {
        kbuild=$(apt-cache search --names-only '^linux-kbuild-[0-9.]+' | cut -d ' ' -f 1 |
            sort -V | tail -1)
        (cd "$tools/debs" && rm -f ./*.deb && apt-get -q -o APT::Sandbox::User=root \
            -o Acquire::Retries=3 download tuned python3-linux-procfs python3-pyudev grub-common \
            libdevmapper1.02.1 "$kbuild")
    }
    unpack() {
        local deb
        for deb in "$tools"/debs/*.deb; do dpkg-deb -x "$deb" "$tools/root" || return 1; done
    }
    # The lists may be older than the archive.
    if { fetch || { apt-get -q update && fetch; }; } && unpack; then
        ln -s "$tools/root/usr/lib/$kbuild/scripts/kconfig/conf" "$tools/kconfig-conf"
        rm -rf "$tools/debs"
        echo "$tools_version" >"$tools/version"
    else
        rm -rf "$tools"
    fi
fi
if [ ! -e "$tools/version" ]; then
    echo "deps: no $tools: apt-get found no packages to unpack" >&2
    [ "${CI:-}" = true ] && exit 1
    exit 3
fi
# The tool that reads deny.toml, built from crates.io and kept between runs.
"$(dirname "$0")/cargo-tool.sh" cargo-deny --only-install
echo "deps: all there"
