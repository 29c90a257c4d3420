//! The power is cut while `rtproof run` sets the machine, runs its program or undoes: the journal
//! on the disk outlives the changes that it names, and the next command clears it.

use std::fs;

use anyhow::{Context, Result};

use crate::case::{Case, Plan};
use crate::cases::tune::tracking::{differing_in, script};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::{Boot, Evidence};

const CUTS: usize = 4;

/// rtproof's folder is on the disk; which values are compared is decided by the first boot.
const BEGIN: &str = "modprobe ext4; mkdir -p /mnt /var/lib
    mount -t ext4 /dev/vda /mnt || exit 9
    mkdir -p /mnt/lib; mount --bind /mnt/lib /var/lib
    marked() { set -- /var/lib/rtproof/tune/*.running; [ -e \"$1\" ]; }
    [ -s /mnt/tracked ] && cp /mnt/tracked /tmp/tracked\n";

/// The machine as it is without any run.
const PLAIN: &str = "[ -s /tmp/tracked ] || { tracked_files >/tmp/tracked; cp /tmp/tracked /mnt/; }
    values >/host/plain; sync\n";

/// What the cut left, the command that clears it, and the machine after it.
const LOOK: &str = "run left rtproof tune status
    run next COMMAND
    run status rtproof tune status
    marked && echo yes >/host/marked
    values >/host/after\n";

/// One run after the other until the power is gone.
const CUT: &str =
    "(usleep $((BOOT * 370000 + $(od -An -N3 -tu4 /dev/urandom) % 400000)); cue cut) &
    while :; do
        rtproof run --cpus 1 --no-trace POLICY -- usleep 200000 >/host/run.out 2>&1 ||
            cp /host/run.out /host/run.failed
    done";

pub(super) fn case(kernel: &'static str) -> Case {
    let machine = Machine::new(kernel).cpus(2).store();
    let plan =
        |script: String, ends| Plan { machine: machine.clone(), plants: Vec::new(), script, ends };
    let mut case = Case::new(
        format!("launch/power-cut/{kernel}"),
        "4 power cuts at random moments of run: the next run, or tune undo, clears what is on the \
         disk and says so, and the values are those of a machine without any run",
        machine.clone(),
    )
    .limit_s(120)
    .on("cut", |guest| guest.power_cut())
    .expect(all_is_clear)
    .other_word("run next rtproof", "run next echo", "cut");
    case.boots = (0..=CUTS + 1)
        .map(|boot| {
            let command = match boot % 2 {
                0 => "rtproof run --cpus 1 --no-trace -- true",
                _ => "rtproof tune undo --all",
            };
            let policy = match boot / 2 % 2 {
                0 => "--policy fifo",
                _ => "--runtime 2ms --period 100ms",
            };
            let look = LOOK.replace("COMMAND", command);
            let cut = CUT.replace("POLICY", policy).replace("BOOT", &boot.to_string());
            match boot {
                0 => plan(script(&format!("{BEGIN}{PLAIN}")), true),
                1 => plan(script(&format!("{BEGIN}{PLAIN}{cut}")), false),
                boot if boot > CUTS => plan(script(&format!("{BEGIN}{look}")), true),
                _ => plan(script(&format!("{BEGIN}{look}{cut}")), false),
            }
        })
        .collect();
    case
}

fn read(boot: &Boot, name: &str) -> Result<String> {
    let path = boot.share.join(name);
    fs::read_to_string(&path).with_context(|| format!("{}: read", path.display()))
}

fn all_is_clear(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let mut left = 0;
    let plain = [&seen.boots()[0], &seen.boots()[1]].map(|boot| read(boot, "plain"));
    let [first, second] = plain;
    let (first, second) = (first?, second?);
    let compared = first.lines().count();
    expect.that("values compared", "500 or more", compared >= 500, compared);
    for (number, boot) in seen.boots().iter().enumerate().skip(2) {
        let cut = number - 1;
        let mut differ = differing_in([&first, &second, &read(boot, "after")?]);
        // An emulated keyboard is not found in each boot.
        differ.retain(|line| !line.starts_with("/sys/devices/platform/i8042/"));
        expect.equal(&format!("cut {cut}: values that differ"), differ, Vec::new());
        let status = read(boot, "status.out")?;
        let applied = "nothing of rtproof is applied";
        expect.contains(&format!("cut {cut}: nothing is applied"), &status, applied);
        expect.equal(&format!("cut {cut}: exit code"), read(boot, "next.rc")?.trim(), "0");
        expect.that(
            &format!("cut {cut}: no mark stays"),
            "none",
            !boot.share.join("marked").exists(),
            "one",
        );
        if !read(boot, "left.out")?.contains(applied) {
            left += 1;
            let said = read(boot, "next.out")? + &read(boot, "next.err")?;
            expect.contains(&format!("cut {cut}: the journal is named"), &said, "ournal");
            expect.contains(&format!("cut {cut}: undone"), &said, "undone");
        }
        let failed = read(boot, "run.failed").unwrap_or_default();
        expect.equal(&format!("cut {cut}: every run before it"), failed, String::new());
    }
    expect.that("cuts that left a journal", "1 or more", left > 0, left);
    println!("launch: {CUTS} power cuts in {}, {left} left a journal", seen.release());
    Ok(())
}
