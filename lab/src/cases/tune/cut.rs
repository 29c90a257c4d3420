//! The power is cut at random moments of apply and undo, many times, on an ext4 that keeps only
//! what the guest has flushed: a guest's boot takes seconds, so there can be many rounds.

use std::fs;

use anyhow::{Context, Result};

use super::tracking::script;
use crate::case::{Case, Plan};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::Evidence;

pub(super) fn cases() -> Vec<Case> {
    vec![cuts()]
}

const CUTS: usize = 20;

/// /etc, /boot and /var are on the disk; 27 files are new, replaced or removed.
const BEGIN: &str = r#"modprobe ext4; mkdir -p /mnt
    mount -t ext4 /dev/vda /mnt || exit 9
    if [ ! -d /mnt/etc ]; then
        mkdir -p /mnt/etc/odd /mnt/boot/odd /mnt/var/lib
        cp -a /etc/. /mnt/etc/
        echo 0123456789abcdef0123456789abcdef >/mnt/etc/machine-id
        for n in 1 2 3 4 5 6 7 8 9; do
            printf 'old %s without an end' $n >/mnt/etc/odd/replaced$n; chmod 640 /mnt/etc/odd/replaced$n
            printf '\000\377%s\r\n' $n >/mnt/boot/odd/removed$n; chmod 4711 /mnt/boot/odd/removed$n
        done
        sync
    fi
    mkdir -p /boot /var
    for folder in etc boot var; do mount --bind /mnt/$folder /$folder; done
    # Folders' times change with what comes and goes in them.
    files() { find /etc /boot ! -type d -exec stat -c '%n %f %u %g %s %Y' {} + | sort >$1
              find /etc /boot -type f -exec sha256sum {} + | sort -k 2 >>$1; find /etc /boot -type d >>$1; }
    [ -e /mnt/before ] || { files /mnt/before; sync; }
    cp /mnt/before /host/before
    state() { printf '{"is":"file","bytes":%s,"mode":%s,"uid":0,"gid":0,"modified_ns":0}' "$1" $2; }
    step() { printf '%s{"change":{"kind":"file","path":"%s","content":%s},"before":%s,' "$comma" $1 "$2" "$3"
             printf '"checks":["test"],"why":"test","impact":"tens"}'; comma=,; }
    plan() { comma=; printf '{"schema":"rtproof/plan/1","steps":['
        for n in 1 2 3 4 5 6 7 8 9; do
            step /etc/odd/new$n '"new\n"' '{"is":"absent"}'
            step /etc/odd/replaced$n '"replaced\n"' "$(state "\"old $n without an end\"" 416)"
            step /boot/odd/removed$n null "$(state "{\"hex\":\"00ff3${n}0d0a\"}" 2505)"
        done; printf ']}'; }
    plan >/tmp/plan.json
"#;

/// Undoes what the last cut left, and looks at it.
const LOOK: &str = "run status rtproof tune status
    run undo rtproof tune undo --all
    files /host/after
";

/// Applies and undoes, over and over, until the power is gone.
const CUT: &str = "rm -rf /var/lib/rtproof
    (usleep $(($(od -An -N3 -tu4 /dev/urandom) % 3000000)); cue cut) &
    while :; do
        rtproof tune apply --plan /tmp/plan.json --yes >/host/apply.out 2>&1 || cp /host/apply.out /host/apply.failed
        rtproof tune undo --all >/host/undone.out 2>&1
    done";

fn cuts() -> Case {
    let machine = Machine::new("rt-6.1").cpus(2).multi_threaded().store();
    let plan =
        |script: String, ends| Plan { machine: machine.clone(), plants: Vec::new(), script, ends };
    let mut case = Case::new(
        "tune/power-cut/rt-6.1",
        "20 power cuts at random moments of apply and undo: after each, undo gives back every file \
         of /etc and /boot",
        machine.clone(),
    )
    .limit_s(60)
    .on("cut", |guest| guest.power_cut())
    .expect(all_is_back)
    .mutation("nothing is undone", "cut 1", |case| {
        for boot in &mut case.boots {
            // With the whole plan applied, and no undo.
            boot.script = boot.script.replace("run undo rtproof", "run undo echo");
            boot.script = boot.script.replace("rtproof tune undo --all >", "sleep 10 >");
            boot.script = boot.script.replace("% 3000000", "% 2 + 3000000");
        }
        case.boots.truncate(2);
        if let Some(last) = case.boots.last_mut() {
            last.script = last.script.replace("rm -rf /var/lib/rtproof", "exit 0");
            last.ends = true;
        }
    });
    case.boots = (0..=CUTS)
        .map(|round| match round {
            0 => plan(script(&format!("{BEGIN}{CUT}")), false),
            CUTS => plan(script(&format!("{BEGIN}{LOOK}")), true),
            _ => plan(script(&format!("{BEGIN}{LOOK}{CUT}")), false),
        })
        .collect();
    case
}

fn all_is_back(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let mut midway = 0;
    for (number, boot) in seen.boots().iter().enumerate().skip(1) {
        let read = |name: &str| {
            let path = boot.share.join(name);
            fs::read_to_string(&path).with_context(|| format!("{}: read", path.display()))
        };
        let (before, after) = (read("before")?, read("after")?);
        expect.that("files compared", "30 or more", before.lines().count() >= 30, &before);
        expect.equal(&format!("cut {number}: files"), &after, &before);
        expect.equal(&format!("cut {number}: undo's exit code"), read("undo.rc")?.trim(), "0");
        let said = read("undo.out")?;
        midway += usize::from(said.contains("/etc/odd/") || said.contains("/boot/odd/"));
    }
    // Random moments are not all between two runs.
    expect.that(
        "cuts in the middle of changes",
        "5 or more",
        midway >= 5.min(seen.boots().len() - 1),
        midway,
    );
    println!("tune: {} power cuts, {midway} in the middle of changes", seen.boots().len() - 1);
    Ok(())
}
