//! Runs that end before their time: killed, powered off, power cut.

use anyhow::Result;

use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::Evidence;

pub(super) fn cases() -> Vec<Case> {
    vec![killed(), powered_off(), power_cut(), interrupted()]
}

/// The record opens, says that it is torn, and lost at most a second of what was measured.
fn torn(
    seen: &Evidence,
    expect: &mut Expect,
    seconds: std::ops::RangeInclusive<i64>,
) -> Result<()> {
    let report = seen.report("run")?;
    expect.equal("record", report.text("/record/state"), "torn");
    expect.equal("verdict", report.text("/verdict/answer"), "not_proven");
    // A period of 1 ms: so many wake-ups are a second.
    let measured = report.number("/all/scheduled")? / 1000;
    expect.within("seconds in the record", measured, seconds);
    Ok(())
}

/// Seconds that the host has taken at least of a record in a folder of its own, of thirty: while
/// its disk is busy the guest's clock runs on, and a second of it is a tenth of the host's. That no
/// more than one is lost is the business of `killed`.
const TAKEN: i64 = 1;

/// What a run to its end stands for in the mutations.
const CUT_SHORT: &str = "--for 600s --budget 1s --load idle >/dev/null 2>&1 &
         lab-plant wait-for --after 30s";

fn killed() -> Case {
    Case::new(
        "ends/killed/rt-6.1",
        "a run that is killed leaves a record that opens and lost at most a second",
        Machine::new("rt-6.1"),
    )
    .tier(Tier::One)
    .script(
        "rtproof prove -o /tmp/o/run --for 20s --budget 2ms --load idle >/dev/null 2>&1 &
         lab-plant wait-for --after 6s
         kill -9 $!
         wait $!
         echo $? >/host/killed.rc
         cp /tmp/o/run.rtproof* /host/",
    )
    .expect(|seen, expect| {
        expect.equal("exit code", seen.rc("killed")?, 137);
        torn(seen, expect, 5..=6)
    })
    .other_word("kill -9", "kill -TERM", "exit code")
}

fn interrupted() -> Case {
    Case::new(
        "ends/interrupted/rt-6.1",
        "a run that is told to end does so at once, with a whole record that says so",
        Machine::new("rt-6.1"),
    )
    .script(
        "rtproof prove -o /tmp/o/run --for 20s --budget 2ms --load idle >/dev/null 2>&1 &
         lab-plant wait-for --after 3s
         kill -TERM $!
         wait $!
         echo $? >/host/interrupted.rc
         cp /tmp/o/run.* /host/",
    )
    .expect(|seen, expect| {
        expect.equal("exit code", seen.rc("interrupted")?, 3);
        let report = seen.report("run")?;
        expect.equal("record", report.text("/record/state"), "sealed");
        expect.equal("ended", report.text("/run/ended/how"), "interrupted");
        expect.within("wake-ups", report.number("/all/scheduled")?, 2_900..=3_400);
        Ok(())
    })
    .other_word("--after 3s", "--after 5s", "wake-ups")
}

fn powered_off() -> Case {
    Case::new(
        "ends/powered-off/rt-6.1",
        "the machine is switched off in mid-run: the record opens outside",
        Machine::new("rt-6.1"),
    )
    .script(
        "rtproof prove -o /host/run --for 600s --budget 1s --load idle >/dev/null 2>&1 &
         lab-plant wait-for --after 30s
         echo o >/proc/sysrq-trigger
         sleep 30",
    )
    .ends_by_itself()
    .expect(|seen, expect| torn(seen, expect, TAKEN..=31))
    .other_word(CUT_SHORT, "--for 5s --budget 1s --load idle >/dev/null 2>&1", "record")
}

fn power_cut() -> Case {
    Case::new(
        "ends/power-cut/rt-6.1",
        "the power is cut in mid-run: the record opens outside",
        Machine::new("rt-6.1"),
    )
    .script(
        "rtproof prove -o /host/run --for 600s --budget 1s --load idle >/dev/null 2>&1 &
         lab-plant wait-for --after 30s
         cue cut
         sleep 30",
    )
    .on("cut", |guest| guest.power_cut())
    .ends_by_itself()
    .expect(|seen, expect| torn(seen, expect, TAKEN..=590))
    .other_word(CUT_SHORT, "--for 5s --budget 1s --load idle >/dev/null 2>&1", "record")
}
