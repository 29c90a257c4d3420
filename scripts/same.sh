#!/usr/bin/env bash
# Proves that a refactoring changed no behaviour: compares two states of the tree by what they do,
# not by how they are written. Files, modules, crates and test binaries may move and be renamed.
#
#   scripts/same.sh [OPTIONS] BEFORE AFTER
#
# BEFORE and AFTER are checkouts (folders) or revisions of this repository. Each is built in its own
# target folder, unless a binary is given. For each subject one line: `same` with the number of
# files or names compared, or the first lines of the difference and the file that holds all of it.
# Exit code: 0 nothing differs, 1 something does, 2 the comparison could not be made.
#
#   --only LIST            compare these subjects alone, joined by commas:
#                            tests      names of all tests but xtask's; new ones do no harm
#                            help       --help, -h, manual pages, completions of every command
#                            reference  docs/reference without schemas (tidy keeps it up to date)
#                            schemas    docs/reference/*.schema.json: what they allow
#                            schematext the same files to the letter: descriptions, names of types
#                            golden     files in a folder `golden`, `snapshots` or `fixtures`
#                            check      check, on captured machines, their variants and folders
#                            plan       tune plan, tune export, tune verify, kernel config on them
#                            import     results of other tools: import, and reading what it wrote
#                            trace      explain, on traces of the kernel and of other tools
#                            record     records that BEFORE wrote, read by both: report, export,
#                                       explain, compare
#                            journal    journals that BEFORE wrote: status, verify and undo by both
#                            tune       apply, status, persist, trial, undo, each by its own binary
#                            new        the projects of `rtproof new`
#   --before-bin FILE      the binary of BEFORE; also --after-bin
#   --before-tests FILE    what `cargo test --workspace -- --list 2>&1` printed, or the same command
#                          without --list; also --after-tests
#   --profile NAME         profile to build with: dev (default), release, ...
#   --data DIR             more inputs: captures, traces, results. Default: $RTPROOF_CAPTURES, else
#                          ../shared/data beside BEFORE, where it exists
#   --out DIR              where the outputs go; default: a new temporary folder, which is kept.
#                          What BEFORE printed there is used again if its binary is the same
#   --jobs N               commands at the same time; default: the number of CPUs
#
# To add a command: one line in `jobs_SUBJECT`. A job is a name and commands that run one after the
# other in an empty folder of its own; what they print, their exit codes and the files that they
# leave are compared. Inputs and folders have the same paths for both binaries, so that only
# what differs from run to run has to be masked (`mask`).
set -euo pipefail

subjects=(tests help reference schemas schematext golden check plan import trace record journal)
subjects+=(tune new)
only="" profile=dev data="" out="" jobs=$(nproc)
before_bin="" after_bin="" before_tests="" after_tests=""
# Lines of a difference that are shown.
shown=40

fail() {
    echo "same.sh: $*" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
        --only | --profile | --data | --out | --jobs | --before-bin | --after-bin | \
            --before-tests | --after-tests)
            [ $# -ge 2 ] || fail "$1 needs a value"
            name=${1#--}
            printf -v "${name//-/_}" %s "$2"
            shift 2
            ;;
        -h | --help)
            sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0"
            exit 0
            ;;
        -*) fail "unknown option $1; see --help" ;;
        *) break ;;
    esac
done
[ $# = 2 ] || fail "two states are needed: BEFORE AFTER; see --help"
for subject in ${only//,/ }; do
    [[ " ${subjects[*]} " = *" $subject "* ]] || fail "no subject '$subject': ${subjects[*]}"
done
for program in python3 git diff tar sha256sum; do
    command -v "$program" >/dev/null || fail "$program is missing"
done
here=$(cd "$(dirname "$0")/.." && pwd)
# In memory, where there is some: a journal is flushed to the disk at each step.
memory=/dev/shm
[ -w $memory ] || memory=${TMPDIR:-/tmp}
out=${out:-$(mktemp -d "$memory/same.XXXXXX")}
mkdir -p "$out"
out=$(cd "$out" && pwd)
rm -rf "$out"/{after,jobs,diff,bin,home}
mkdir -p "$out"/{after,jobs,diff,bin,home}
[[ $out != *[[:space:]]* ]] || fail "$out: a path without spaces is needed"

wants() { [ -z "$only" ] || [[ ",$only," = *",$1,"* ]]; }

# tree ARGUMENT: the folder of a state; a revision is checked out below target/, once.
tree() {
    if [ -d "$1" ]; then
        (cd "$1" && git rev-parse --show-toplevel)
        return
    fi
    local commit folder
    commit=$(git -C "$here" rev-parse --verify --quiet "$1^{commit}") ||
        fail "$1 is neither a folder nor a revision"
    folder=$here/target/same/$commit
    [ -e "$folder/.git" ] ||
        git -C "$here" worktree add --quiet --detach "$folder" "$commit" >&2
    echo "$folder"
}

# built TREE: builds the binary and prints its path.
built() {
    local folder=debug target
    [ "$profile" = dev ] || folder=$profile
    (cd "$1" && cargo build --quiet --locked --profile "$profile" --package rtproof >&2) ||
        fail "$1 does not build"
    target=$(cd "$1" && cargo metadata --format-version 1 --no-deps --locked --offline |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
    echo "$target/$folder/rtproof"
}

# test_names TREE SAVED: the last part of the name of each test, sorted, repeated as often as it is
# there. Examples in documentation have no name that lasts. xtask is built with the rest, so that
# the crates have the same features as in `make test`; its tests are left out.
test_names() {
    if [ -n "$2" ]; then
        cat "$2"
    else
        (cd "$1" && cargo test --locked --profile "$profile" --workspace -- --list 2>&1) ||
            fail "the tests of $1 cannot be listed"
    fi | sed -nE '/^ +(Running|Doc-tests) /p
        s/^(.*): test$/\1/p; s/^test (.*) \.\.\. .*/\1/p
        s/^(ok|FAILED) +(\S+) \([0-9.]+ s\).*/\2/p' |
        awk '/^ +Running / { skip = /\/xtask-/; next } /^ +Doc-tests / { skip = 1; next }
             !skip { sub(/ - should panic$/, ""); sub(/.*::/, ""); print }' | LC_ALL=C sort
}

# Python's part: unpacks captures, makes variants of them, writes machines to be changed.
inputs() {
    python3 - "$@" <<'PYTHON'
import json, os, re, sys, tomllib
from pathlib import Path

def entries(text):
    """Entries of a capture: path, kind, lines."""
    head, *parts = re.split(r"^== ", text, flags=re.M)
    for part in parts:
        first, *lines = part.split("\n")
        path, _, kind = first.rpartition(" ")
        yield path, kind, [line[1:] for line in lines if line[:1] in ("|", ":")]

def variant(toml, machines, to):
    """A captured machine with a mistake, as crates/rtproof/tests describes them."""
    wanted = tomllib.loads(toml.read_text())
    text = (machines / wanted["machine"]).read_text()
    head = text[:text.index("\n== ") + 1]
    all = {path: (kind, lines) for path, kind, lines in entries(text) if kind != "end"}
    all.pop("", None)
    for path, content in wanted.get("files", {}).items():
        former = "\n".join(all.get(path, ("", []))[1])
        all[path] = ("file", content.replace("{}", former).split("\n"))
    all |= {path: ("absent", []) for path in wanted.get("absent", [])}
    all |= {path: ("denied", ["EACCES"]) for path in wanted.get("denied", [])}
    with open(to, "w") as out:
        out.write(head)
        for path in sorted(all, key=lambda path: path.encode()):
            kind, lines = all[path]
            mark = ":" if kind == "escaped" else "|"
            out.write(f"== {path} {kind}\n" + "".join(f"{mark}{line}\n" for line in lines))
        out.write("== end\n")

def unpack(capture, to):
    """The files of a capture as a folder that can be changed."""
    for path, kind, lines in entries(capture.read_text()):
        if not path.startswith("/") or ".." in path:
            continue
        at = to / path[1:]
        text = "".join(line + "\n" for line in lines)
        try:
            at.parent.mkdir(parents=True, exist_ok=True)
            if kind in ("file", "lines"):
                at.write_text(text)
            elif kind == "escaped":
                at.write_bytes(text[:-1].encode().decode("unicode_escape").encode("latin-1"))
            elif kind == "folder":
                at.mkdir(exist_ok=True)
            elif kind == "link" and lines and not at.exists():
                at.symlink_to(lines[0])
        except OSError:
            pass  # A name that is a file in one entry and a folder in another.
    finish(to)

def small(to):
    """Four CPUs, GRUB 2 as Debian has it, values as no program leaves them."""
    release = "6.12.5-rt"
    words = "root=/dev/sda1 ro quiet"
    files = {
        "proc/version": f"Linux version {release} (user@host) (gcc) #1 SMP PREEMPT_RT\n",
        "proc/cmdline": f"BOOT_IMAGE=/boot/vmlinuz-{release} {words}\n",
        "proc/sys/kernel/osrelease": release + "\n",
        "proc/sys/kernel/version": "#1 SMP PREEMPT_RT\n",
        "proc/sys/kernel/arch": "x86_64\n",
        "proc/sys/kernel/hostname": "plc7\n",
        "proc/sys/kernel/random/boot_id": "11111111-2222-4333-8444-555555555555\n",
        "proc/sys/kernel/sched_rt_runtime_us": "950000",
        "proc/sys/vm/stat_interval": "7\n\n",
        "proc/sys/vm/swappiness": "13  \t\n",
        "proc/sys/kernel/timer_migration": "  1\n",
        "proc/irq/default_smp_affinity": "f\n",
        "proc/self/mountinfo": "25 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n",
        "proc/mounts": "/dev/sda1 / ext4 rw,relatime 0 0\n",
        "sys/kernel/mm/ksm/run": "1\n",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        "sys/kernel/mm/transparent_hugepage/defrag": "[always] defer never",
        "sys/devices/system/cpu/isolated": "\n",
        "sys/devices/system/cpu/nohz_full": "(null)\n",
        "sys/class/dmi/id/bios_version": "1.2\n",
        "sys/class/dmi/id/bios_date": "01/02/2025\n",
        "proc/sys/kernel/soft_watchdog": "1\n",
        "proc/sys/kernel/watchdog": "1\n",
        "etc/default/grub": "GRUB_DEFAULT=0\n",
        "etc/grub.d/41_custom": "#!/bin/sh\n",
        "boot/grub/grubenv": "# GRUB Environment Block\n".ljust(1024, "#"),
        f"boot/vmlinuz-{release}": "kernel\n",
        f"boot/initrd.img-{release}": "initrd\n",
        "boot/grub/grub.cfg": (
            "if [ -s $prefix/grubenv ]; then\n  set have_grubenv=true\n  load_env\nfi\n"
            'if [ "${next_entry}" ] ; then\n   set default="${next_entry}"\n   set next_entry=\n'
            '   save_env next_entry\n   set boot_once=true\nelse\n   set default="0"\nfi\n'
            "menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'gnulinux-simple-1' "
            "{\n\tsearch --no-floppy --fs-uuid --set=root 1\n"
            f"\tlinux\t/boot/vmlinuz-{release} {words}\n\tinitrd\t/boot/initrd.img-{release}\n}}\n"
            "if [ -f  ${config_directory}/custom.cfg ]; then\n"
            "  source ${config_directory}/custom.cfg\n"
            'elif [ -z "${config_directory}" -a -f  $prefix/custom.cfg ]; then\n'
            "  source $prefix/custom.cfg\nfi\n"),
        "usr/lib/systemd/system/irqbalance.service":
            "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n",
    }
    for name in ("online", "possible", "present"):
        files[f"sys/devices/system/cpu/{name}"] = "0-3\n"
    governors = "performance powersave schedutil ondemand\n"
    for cpu, governor in enumerate(("ondemand", "schedutil", "powersave ", "schedutil")):
        folder = f"sys/devices/system/cpu/cpu{cpu}/cpufreq"
        files[f"{folder}/scaling_governor"] = governor + "\n"
        files[f"{folder}/scaling_available_governors"] = governors
        files[f"{folder}/scaling_driver"] = "acpi-cpufreq\n"
    for irq, action in ((24, "eth0"), (25, "nvme0q0")):
        files[f"proc/irq/{irq}/smp_affinity_list"] = "0-3\n"
        files[f"proc/irq/{irq}/effective_affinity_list"] = "2\n"
        files[f"sys/kernel/irq/{irq}/actions"] = action + "\n"
        files[f"sys/kernel/irq/{irq}/hwirq"] = f"{irq}0\n"
        files[f"sys/kernel/irq/{irq}/chip_name"] = "PCI-MSI\n"
    for path, text in files.items():
        at = to / path
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(text)
    wants = to / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True)
    (wants / "irqbalance.service").symlink_to("/usr/lib/systemd/system/irqbalance.service")
    finish(to)

def finish(to):
    for folder in ("etc", "var/lib", "run/lock", "boot"):
        (to / folder).mkdir(parents=True, exist_ok=True)
    (to / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    for folder, folders, names in os.walk(to):
        for name in folders + names:
            os.utime(os.path.join(folder, name), (10**9, 10**9), follow_symlinks=False)

def shape(schema, to):
    """What a schema allows: no texts, and types by the order in which they are met."""
    whole = json.loads(schema.read_text())
    types = whole.pop("$defs", {})
    names = {}

    def bare(value, is_properties=False):
        if isinstance(value, list):
            return [bare(item) for item in value]
        if not isinstance(value, dict):
            return value
        result = {}
        for key, item in sorted(value.items()):
            if key == "$ref" and not is_properties:
                name = item.removeprefix("#/$defs/")
                result[key] = names.setdefault(name, f"type {len(names)}")
            elif is_properties or key not in ("title", "description"):
                result[key] = bare(item, key == "properties" and not is_properties)
        return result if is_properties else one_of(result)

    def one_of(result):
        """Words are one list, whether each has a text of its own or not."""
        if "const" in result:
            result["enum"] = [result.pop("const")]
        others, words = [], []
        for item in result.get("oneOf", []):
            if item.keys() == {"enum", "type"} and item["type"] == "string":
                words += item["enum"]
            else:
                others.append(item)
        if words:
            result["oneOf"] = others + [{"enum": words, "type": "string"}]
        if len(result.get("oneOf", [])) == 1:
            result |= result.pop("oneOf")[0]
        if "enum" in result:
            result["enum"].sort(key=str)
        return result

    # Each type may name more.
    met = {"": bare(whole)}
    while len(met) <= len(names):
        name, number = list(names.items())[len(met) - 1]
        met[number] = bare(types[name])
    to.write_text(json.dumps(met, indent=1) + "\n")

what, *paths = sys.argv[1:]
jobs = {"variant": variant, "unpack": unpack, "small": small, "shape": shape}
jobs[what](*map(Path, paths))
PYTHON
}

# Collects what both binaries read, from BEFORE: the inputs are the same for both.
gather() {
    local from=$1/fixtures to=$out/inputs file name
    mkdir -p "$to"/{machines,folders,results,traces,records,trees}
    for file in "$from"/machines/*.txt; do
        case $file in *.check.txt) ;; *) cp "$file" "$to/machines/" ;; esac
    done
    for file in "$from"/variants/*.toml; do
        name=$(basename "$file" .toml)
        inputs variant "$file" "$from/machines" "$to/machines/variant-$name.txt"
    done
    for file in "$from"/imports/*; do
        case $file in *README.md) ;; *) cp "$file" "$to/results/" ;; esac
    done
    for file in "$1"/fuzz/seeds/{ftrace-text,trace-dat,tracers}/*; do
        [ -f "$file" ] && cp "$file" "$to/traces/$(basename "$(dirname "$file")")-${file##*/}"
    done
    cp "$1"/fuzz/seeds/journal/whole "$to/whole.journal"
    cp "$1"/fuzz/seeds/plan/three.json "$to/three.json"
    while IFS= read -r file; do
        tar -C "$to/records" -xzf "$1/$file"
    done < <(files "$1" '*/golden/*.tar.gz')
    for file in qemu-rt-6.1-smt-numa-isolated qemu-rt-6.12-power-states vm-firecracker; do
        inputs unpack "$from/machines/$file.txt" "$to/trees/$file"
    done
    inputs small "$to/trees/small"
    [ -n "$data" ] || return 0
    # Text and traces of others: both commands say of each what it is, or why not.
    while IFS= read -r file; do
        name=${file#"$data"/}
        name=${name//[\/ ]/-}
        case $file in
            *README.md | */truth.txt | */statistics/* | */procfs/* | */machine-inputs/*) ;;
            *.tgz) mkdir -p "$to/folders/$name" && tar -C "$to/folders/$name" -xzf "$file" ;;
            *) cp "$file" "$to/results/$name" && ln "$to/results/$name" "$to/traces/$name" ;;
        esac
    done < <(find "$data" -type f | LC_ALL=C sort)
    for file in "$data"/machine-inputs/*/ "$data"/captures/procfs/; do
        [ ! -d "$file" ] || cp -r "$file" "$to/folders/$(basename "$file")"
    done
    # As git leaves them, files of others may not be writable.
    chmod -R u+w "$to"
}

# What differs from run to run: times of day, durations, ids made at random, this machine.
mask() {
    sed -E -e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?(\.[0-9]+)?Z?/TIME/g' \
        "$@"
}

# listing FOLDER: every file with type, mode, names, time, content; without the journals, and with
# the time only of what is as old as the inputs.
listing() {
    (
        cd "$1" || exit
        find . -path ./var/lib/rtproof -prune -o -path ./run -prune -o \
            -printf '%P %y %m %n %l %Ts\n' |
            sed -E 's/ [0-9]{6,}$//;s/ 1000000000$/ old/' | LC_ALL=C sort
        find . -path ./var/lib/rtproof -prune -o -path ./run -prune -o -type f -print0 |
            LC_ALL=C sort -z | xargs -0 sha256sum
    )
}

# job TO NAME COMMANDS: runs commands, separated by `;`, in an empty folder; writes what came of it.
job() {
    local to=$1/$2.txt folder=$out/jobs/$2 words code file
    mkdir -p "$(dirname "$to")" "$folder"
    cd "$folder"
    local IFS=';'
    # shellcheck disable=SC2086
    set -- ${3}
    unset IFS
    for words; do
        # shellcheck disable=SC2086
        set -- $words
        echo "\$ $*"
        code=0
        case $1 in
            copy) cp -a "$2" "$3" ;;
            listing) listing "$2" ;;
            *) timeout 120 "$out/bin/$@" >.stdout 2>.stderr </dev/null || code=$? ;;
        esac
        [ -e .stdout ] || continue
        cat .stdout
        sed 's/^/stderr: /' .stderr
        echo "exit code $code"
        rm .stdout .stderr
    done | mask >"$to"
    # A record is read by the commands above; a tree is listed by them.
    find . -type f ! -name '*.rtproof' ! -path './root/*' | LC_ALL=C sort |
        while IFS= read -r file; do
            echo "--- $file"
            if grep -qI '' "$file"; then mask "$file"; else sha256sum <"$file"; fi
        done >>"$to"
    cd "$out" && rm -rf "$folder"
}

# run_jobs SIDE SUBJECT: runs the jobs of a subject with the binary of a side.
run_jobs() {
    cp "$out/$1.bin" "$out/bin/rtproof"
    mkdir -p "$out/$1/$2"
    "jobs_$2" | tr '\t\n' '\0\0' | env -i PATH="$PATH" HOME="$out/home" TZ=UTC LC_ALL=C.UTF-8 \
        COLUMNS=100 NO_COLOR=1 out="$out" BASH_ENV="$out/functions" \
        xargs -0 -r -n 2 -P "$jobs" bash -c 'job "$0" "$1" "$2"' "$out/$1/$2"
}

# kept: what BEFORE writes and both read: records of runs, of imports; journals in trees.
keep() {
    local to=$out/kept file name tree
    cp "$out/before.bin" "$out/bin/rtproof"
    cp -r "$out/inputs/records" "$to/records"
    (
        export HOME="$out/home" TZ=UTC COLUMNS=100 NO_COLOR=1 LC_ALL=C.UTF-8
        cd "$to/records"
        "$out/bin/rtproof" prove --cpus 0 --for 2s --budget 1ms --policy other --load idle \
            --output prove.rtproof || :
        "$out/bin/rtproof" measure --cpus 0 --for 1s --policy other --workload timer-wakeup \
            --spike 20us --output measured || :
        for file in "$out"/inputs/results/*; do
            "$out/bin/rtproof" import "$file" --interval 1ms --duration 60s \
                --output "import-${file##*/}.rtproof" || :
        done
        cd "$to"
        for tree in "$out"/inputs/trees/*; do
            name=${tree##*/}
            cp -a "$tree" "$name"
            "$out/bin/rtproof" tune apply --root "$name" --level max --risky --durable \
                --keep-going --yes || :
            [ "$name" != small ] || "$out/bin/rtproof" tune trial --root "$name" isolcpus=2-3 \
                skew_tick=1 --yes || :
        done
    ) >"$out/kept.log" 2>&1
    [ -n "$(find "$to/records" -name 'import-*.rtproof' -print -quit)" ] ||
        fail "no record was written: $out/kept.log"
    [ -n "$(find "$to" -name '*.journal' -print -quit)" ] ||
        fail "no journal was written: $out/kept.log"
}

# Each prints lines NAME<TAB>COMMANDS.
job_line() { printf '%s\t%s\n' "$1" "${*:2}"; }

jobs_check() {
    local file name
    for file in "$out"/inputs/machines/* "$out"/inputs/folders/*; do
        name=${file##*/}
        job_line "$name" "rtproof check --root $file --all -v;rtproof check --root $file;" \
            "rtproof check --root $file --json --all --profile busy-poll --cpus 1 --budget 100us;" \
            "rtproof check --root $file --json"
    done
    file=$out/inputs/machines/vm-firecracker.txt
    job_line forms "rtproof check --root $file --format sarif;" \
        "rtproof check --root $file --format junit --fail-on doubtful;" \
        "rtproof check --root $file --only memory,power --skip thp=needed -v --color always;" \
        "rtproof check explain --root $file --json;rtproof check explain;" \
        "rtproof check tick --root $file;rtproof check --root $file --pid 1;" \
        "rtproof capture - --root $file;rtproof capture a.txt --root $file --json"
}

jobs_plan() {
    local file name
    for file in "$out"/inputs/machines/* "$out"/inputs/folders/*; do
        name=${file##*/}
        job_line "$name" "rtproof tune plan --root $file;" \
            "rtproof tune plan --root $file --json --level max --risky --durable;" \
            "rtproof tune plan --root $file --cpus 1 --level safe -v;" \
            "rtproof tune verify isolcpus=1 nohz_full=1 --root $file;" \
            "rtproof tune verify isolcpus=1 skew_tick=1 --json --root $file"
    done
    for file in "$out"/inputs/machines/{qemu-rt-6.1-smt-numa-isolated,vm-firecracker}.txt; do
        for name in tuned ansible systemd kconfig yocto buildroot; do
            job_line "export-$name-${file##*/}" "rtproof tune export --format $name --root $file" \
                "--cpus 1 --level max --risky --durable --json written"
        done
        job_line "config-${file##*/}" "rtproof kernel config --root $file --json written;" \
            "rtproof kernel config --root $file --cpus 1 --core-sched again"
    done
}

# reads RECORD: the commands that read it.
reads() {
    echo "rtproof report $1;rtproof report $1 --json;rtproof report $1 -v;"
    echo "rtproof report $1 --html page.html;rtproof explain $1 --worst 2;"
    echo "rtproof explain $1 --json;"
    echo "rtproof explain $1 --perfetto a.pftrace;rtproof explain $1 --trace-dat a.dat;"
    local table
    for table in json hdr cyclictest junit; do echo "rtproof export $1 --format $table;"; done
    for table in seconds hist top host loads threads notes spikes causes effects slices imported \
        bins moving no-such-table; do
        echo "rtproof export $1 --format csv --table $table;"
    done
    echo "rtproof report $1 --moving 2s --half-life 1s"
}

jobs_import() {
    local file name
    for file in "$out"/inputs/results/*; do
        name=${file##*/}
        job_line "$name" "rtproof import $file --show;rtproof import $file --show --json;" \
            "rtproof import $file --interval 1ms --duration 60s --output a.rtproof;" \
            "$(reads a.rtproof | tr '\n' ' ')"
    done
    file=$out/inputs/results
    job_line compare "rtproof compare $file/cyclictest-2.4-h.txt $file/cyclictest-2.4.json" \
        "--force --html page.html;rtproof compare --force --json" \
        "a=$file/cyclictest-2.4-h.txt b=$file/oslat-2.4.json c=$file/cyclictest-2.4-H.txt"
}

jobs_trace() {
    local file
    for file in "$out"/inputs/traces/*; do
        job_line "${file##*/}" "rtproof explain $file --over 1us --worst 5;" \
            "rtproof explain $file --json --over 20us;rtproof explain $file -v;" \
            "rtproof explain $file --over 1us --perfetto a.pftrace;" \
            "rtproof explain $file --over 1us --trace-dat a.dat"
    done
}

jobs_record() {
    local file name first="" second=""
    while IFS= read -r file; do
        name=${file#"$out/kept/records/"}
        job_line "${name//\//-}" "$(reads "$file" | tr '\n' ' ')"
        case $name in import-cyclictest*) first=${second:-$file} second=$file ;; esac
    done < <(find "$out/kept/records" -name '*.rtproof' | LC_ALL=C sort)
    job_line compare "rtproof compare $first $second --force;" \
        "rtproof compare $first $second --force --json --html page.html;" \
        "rtproof compare $first $second --force --reference $out/kept/records;" \
        "rtproof measure --resume $out/kept/records/cells --plan"
}

jobs_journal() {
    local tree
    for tree in "$out"/kept/*/; do
        tree=${tree%/}
        [ -d "$tree/var/lib/rtproof" ] || continue
        job_line "${tree##*/}" "copy $tree root;rtproof tune status --root root --json;" \
            "rtproof tune status --root root -v;rtproof tune verify --root root --json;" \
            "rtproof tune confirm --root root;listing root;" \
            "rtproof tune undo --root root --all;listing root;" \
            "rtproof tune status --root root --json;rtproof tune undo --root root --all --json"
        job_line "${tree##*/}-json" "copy $tree root;" \
            "rtproof tune undo --root root --json --all;rtproof tune undo --root root --json;" \
            "listing root"
    done
    job_line whole "copy $out/inputs/trees/small root;" \
        "rtproof tune undo --root root --journal $out/inputs/whole.journal --json;" \
        "rtproof tune undo --root root --journal $out/inputs/whole.journal --yes --damaged"
}

jobs_tune() {
    local tree
    for tree in "$out"/inputs/trees/*; do
        job_line "${tree##*/}" "copy $tree root;" \
            "rtproof tune apply --root root --level max --risky --durable --keep-going --yes;" \
            "listing root;rtproof tune status --root root;" \
            "rtproof tune persist --root root --yes;listing root;" \
            "rtproof tune undo --root root --all;listing root;" \
            "rtproof tune apply --root root --cpus 1 --json --yes;" \
            "rtproof tune status --root root;" \
            "rtproof tune undo --root root --json;listing root"
    done
    tree=$out/inputs/trees/small
    job_line trial "copy $tree root;" \
        "rtproof tune trial isolcpus=2-3 skew_tick=1 --root root --yes --json;listing root;" \
        "rtproof tune status --root root --json;rtproof tune verify --root root;" \
        "rtproof tune confirm --root root --force;listing root;" \
        "rtproof tune undo --root root --all;listing root"
    job_line plan "copy $tree root;" \
        "rtproof tune apply --root root --plan $out/inputs/three.json --yes;" \
        "rtproof tune apply --root root --plan $out/inputs/three.json --yes --keep-going --json;" \
        "rtproof experiment boots skew_tick=1 --root root;" \
        "rtproof check tick smt turbo --root root --by me;rtproof check tick --root root --json;" \
        "listing root"
}

jobs_new() {
    local language
    for language in c cpp rust; do
        job_line $language "rtproof new arm-control --lang $language --json"
        job_line $language-deadline "rtproof new mixer --lang $language --deadline"
    done
}

# commands: every command of a binary, by its helps.
commands() {
    { "$out/bin/rtproof" "$@" --help || :; } |
        sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p' | while IFS= read -r name; do
        [ "$name" != help ] || continue
        echo "$*${*:+ }$name"
        # shellcheck disable=SC2086
        commands "$@" "$name"
    done
}

jobs_help() {
    local path shell
    job_line rtproof "rtproof --help;rtproof -h;rtproof man;rtproof --version;rtproof"
    while IFS= read -r path; do
        job_line "${path// /-}" "rtproof $path --help;rtproof $path -h;rtproof man $path"
    done < <(COLUMNS=100 commands)
    for shell in bash elvish fish powershell zsh; do
        job_line "completions-$shell" "rtproof completions $shell"
    done
}

# Files of the tree itself, by names that last when their folder moves.
files() { git -C "$1" ls-files --cached --others --exclude-standard "${@:2}"; }
files_reference() { files "$1" docs/reference | grep -v '\.schema\.json$'; }
files_schemas() { files "$1" 'docs/reference/*.schema.json'; }
files_schematext() { files_schemas "$1"; }
files_golden() { files "$1" | grep -E '(^|/)(golden|snapshots|fixtures)/' | grep -v 'README\.md$'; }

# copy_files SIDE SUBJECT TREE
copy_files() {
    local file to
    rm -rf "${out:?}/$1/$2"
    mkdir -p "$out/$1/$2"
    "files_$2" "$3" | while IFS= read -r file; do
        [ -f "$3/$file" ] || continue
        to=$out/$1/$2/$(sed -E 's,^(.*/)?(golden|snapshots|fixtures|reference)/,\2/,' <<<"$file")
        while [ -e "$to" ]; do to=$to.again; done
        mkdir -p "$(dirname "$to")"
        if [ "$2" = schemas ]; then
            inputs shape "$3/$file" "$to"
        elif grep -qI '' "$3/$file" || [ ! -s "$3/$file" ]; then
            cp "$3/$file" "$to"
        else
            sha256sum <"$3/$file" >"$to"
        fi
    done
}

# compare SUBJECT: one line, or the difference; 1 where something differs.
compare() {
    local all=$out/diff/$1 count extra=""
    if [ "$1" = tests ]; then
        count="$(wc -l <"$out/before/tests") tests"
        comm -23 "$out/before/tests" "$out/after/tests" | sed 's/^/missing: /' >"$all"
        comm -13 "$out/before/tests" "$out/after/tests" >"$out/diff/tests-added"
        [ ! -s "$out/diff/tests-added" ] ||
            extra=", $(wc -l <"$out/diff/tests-added") added: $out/diff/tests-added"
    else
        count="$(find "$out/before/$1" -type f | wc -l) files, $(find "$out/before/$1" -type f \
            -exec cat {} + | wc -l) lines"
        (cd "$out" && diff -ruN "before/$1" "after/$1") >"$all" || :
    fi
    [ "${count%% *}" -gt 0 ] || fail "$1: nothing to compare"
    if [ ! -s "$all" ]; then
        printf '%-10s same: %s%s\n' "$1" "$count" "$extra"
        return 0
    fi
    local what="lines differ in $(grep -c '^diff -ruN' "$all" || :) files"
    [ "$1" != tests ] || what="tests are missing"
    printf '%-10s DIFFERS: %d %s, all in %s%s\n' "$1" \
        "$(grep -cE '^([-+][^-+]|[-+]$|missing)' "$all" || :)" "$what" "$all" "$extra"
    head -n "$shown" "$all" | cut -c -200
    return 1
}

before=$(tree "$1")
after=$(tree "$2")
data=${data:-${RTPROOF_CAPTURES:-}}
[ -n "$data" ] || [ ! -d "$before/../shared/data" ] || data=$before/../shared/data
[ -z "$data" ] || data=$(cd "$data" && pwd)
echo "before: $before"
echo "after:  $after"
echo "inputs: fixtures${data:+, $data}"

runs=0
for subject in help check plan import trace record journal tune new; do
    wants $subject && runs=1
done
mkdir -p "$out/before"
if [ $runs = 1 ]; then
    cp "${before_bin:-$(built "$before")}" "$out/before.bin"
    cp "${after_bin:-$(built "$after")}" "$out/after.bin"
    declare -f job mask listing >"$out/functions"
    id=$(cat "$0" "$out/before.bin" | sha256sum)
    if [ "$id $before $data" != "$(cat "$out/id" 2>/dev/null)" ]; then
        rm -rf "$out"/{before,inputs,kept}
        mkdir -p "$out"/{before,inputs,kept}
        gather "$before"
        keep
        echo "$id $before $data" >"$out/id"
    fi
fi
differs=0
for subject in "${subjects[@]}"; do
    wants "$subject" || continue
    case $subject in
        tests)
            test_names "$before" "$before_tests" >"$out/before/tests"
            test_names "$after" "$after_tests" >"$out/after/tests"
            ;;
        reference | schemas | schematext | golden)
            copy_files before "$subject" "$before"
            copy_files after "$subject" "$after"
            ;;
        *)
            [ -e "$out/before/$subject.done" ] || run_jobs before "$subject"
            touch "$out/before/$subject.done"
            run_jobs after "$subject"
            ;;
    esac
    compare "$subject" || differs=1
done
[ $differs = 0 ] && echo "nothing differs" || echo "something differs"
exit $differs
