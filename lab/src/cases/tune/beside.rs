//! The same harness for TuneD: its profile for real-time is applied, its daemon is killed and
//! started again, and undoes everything.

use anyhow::Result;

use super::tracking::{differing, script, tracked};
use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::Evidence;

pub(super) fn cases() -> Vec<Case> {
    vec![beside()]
}

fn beside() -> Case {
    Case::new(
        "tune/beside-tuned",
        "killed and undone: rtproof leaves no value behind; what TuneD leaves is printed beside",
        Machine::disk().cpus(2).multi_threaded(),
    )
    .tier(Tier::Three)
    .limit_s(1500)
    .script(script(
        "odd
         systemctl stop irqbalance.service
         track mine.first; track mine.before
         run plan rtproof tune plan --cpus 1 --level max --json
         cp /host/plan.out /tmp/plan.json
         STRIDE=60 killed write rtproof tune apply --plan /tmp/plan.json --yes
         run apply rtproof tune apply --plan /tmp/plan.json --yes
         track mine.during
         run undo rtproof tune undo
         track mine.after",
    ))
    .then_again()
    .script(script(
        "odd
         systemctl stop irqbalance.service
         rm -f /etc/systemd/system/tuned.service
         systemctl daemon-reload
         echo 'isolated_cores=1' >/etc/tuned/realtime-variables.conf
         track first; track before
         # As it is meant to be used.
         systemctl start tuned.service
         run profile tuned-adm profile realtime
         track tuned.during
         run off tuned-adm off
         track tuned.off
         # Killed, started again, told to take everything back.
         run again tuned-adm profile realtime
         kill -9 $(cat /run/tuned/tuned.pid)
         sleep 1
         systemctl reset-failed tuned.service
         systemctl start tuned.service
         run off2 tuned-adm off
         track tuned.killed
         cp /var/log/tuned/tuned.log /host/",
    ))
    .expect(compared)
    .other_word("run undo rtproof", "run undo echo", "rtproof: values that differ")
}

/// Values of the kernel that differ: tasks come and go, and both tools move them.
fn values(seen: &Evidence, names: [&str; 3]) -> Result<usize> {
    Ok(differing(seen, names)?.iter().filter(|line| line.starts_with('/')).count())
}

fn compared(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let theirs = |last: &str| values(seen, ["first", "before", last]);
    let ours = |last: &str| values(seen, ["mine.first", "mine.before", last]);
    let rounds = seen.text("rounds.txt")?;
    let rows = [
        ("values tracked", tracked(seen, "before")?.len(), tracked(seen, "mine.before")?.len()),
        ("changed by its profile", theirs("tuned.during")?, ours("mine.during")?),
        ("left after a clean end", theirs("tuned.off")?, ours("mine.after")?),
        ("left after SIGKILL, restart, undo", theirs("tuned.killed")?, ours("mine.after")?),
    ];
    let mut table =
        String::from("| | TuneD, profile realtime | rtproof tune, --cpus 1 |\n|---|---|---|\n");
    for (what, tuned, rtproof) in rows {
        table.push_str(&format!("| {what} | {tuned} | {rtproof} |\n"));
    }
    table.push_str(&format!("\nrtproof: {rounds}"));
    println!("{table}");
    seen.keep("tune-beside-tuned.md", &table)?;
    expect.that("TuneD changes values", "10 or more", theirs("tuned.during")? >= 10, &table);
    expect.that("rtproof changes values", "10 or more", ours("mine.during")? >= 10, &table);
    expect.equal("rtproof: values that differ", ours("mine.after")?, 0);
    expect.contains("rtproof: rounds", &rounds, "rounds in which values differ 0,");
    Ok(())
}
