//! Where nothing can be tuned: a clear sentence, exit code 1, nothing changed.

use anyhow::Result;

use super::tracking::{as_before, script};
use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::Evidence;

pub(super) fn cases() -> Vec<Case> {
    vec![unprivileged(), read_only(), locked_down(), unwritable_state(), container()]
}

fn machine() -> Machine {
    Machine::new("rt-6.1")
}

/// Exit code 1, these words, and nothing changed.
fn refused(seen: &Evidence, expect: &mut Expect, words: &[&str]) -> Result<()> {
    expect.equal("apply: exit code", seen.rc("apply")?, 1);
    let said = seen.err("apply")?;
    for word in words {
        expect.contains(&format!("says {word:?}"), &said, word);
    }
    // A sentence or a few, not a dump of what went wrong everywhere.
    expect.within("lines of it", said.lines().count(), 1..=12);
    as_before(seen, expect, ["first", "before", "after"])
}

fn unprivileged() -> Case {
    Case::new(
        "tune/refused/unprivileged",
        "without root nothing is tuned, and the plan is shown all the same",
        machine(),
    )
    .script(script(
        "chmod 777 /tmp/o
         track first; track before
         run plan su lab -c 'rtproof tune plan --cpus 0'
         run apply su lab -c 'rtproof tune apply --cpus 0 --yes'
         track after",
    ))
    .expect(|seen, expect| {
        expect.equal("plan: exit code", seen.rc("plan")?, 0);
        refused(seen, expect, &["root"])
    })
    .other_word("apply su lab -c", "apply sh -c", "apply: exit code")
}

/// As in a container: /sys and /proc/sys are there, and cannot be written.
fn read_only() -> Case {
    Case::new(
        "tune/refused/read-only-sys",
        "where /sys and /proc/sys are mounted read-only, apply says so before it changes anything",
        machine(),
    )
    .script(script(
        "track first; track before
         mount --bind /proc/sys /proc/sys
         mount -o remount,ro,bind /proc/sys
         mount -o remount,ro,bind /sys
         run apply rtproof tune apply --cpus 0 --yes
         track after",
    ))
    .expect(|seen, expect| refused(seen, expect, &["read-only"]))
    .other_word("remount,ro", "remount,rw", "apply: exit code")
}

fn locked_down() -> Case {
    Case::new(
        "tune/refused/lockdown",
        "what a locked-down kernel refuses is named with the reason, and nothing is half done",
        machine(),
    )
    .script(script(
        "mount -t securityfs securityfs /sys/kernel/security
         track first
         echo integrity >/sys/kernel/security/lockdown
         track before
         run apply rtproof tune apply --cpus 0 --yes sched-features-rt-push-ipi
         track after",
    ))
    .expect(|seen, expect| refused(seen, expect, &["locked down"]))
    .other_word("echo integrity", "true", "says \"locked down\"")
}

/// An immutable system: no journal, no change.
fn unwritable_state() -> Case {
    Case::new(
        "tune/refused/no-journal",
        "where the journal cannot be written, nothing is changed",
        machine(),
    )
    .script(script(
        "mkdir -p /var/lib
         mount --bind /var /var
         mount -o remount,ro,bind /var
         track first; track before
         run apply rtproof tune apply --cpus 0 --yes
         track after",
    ))
    .expect(|seen, expect| refused(seen, expect, &["/var/lib/rtproof", "ead-only"]))
    .other_word("remount,ro", "remount,rw", "apply: exit code")
}

/// A real container of systemd's.
fn container() -> Case {
    let nspawn = "systemd-nspawn -q --register=no --keep-unit --volatile=yes -D / --bind=/tmp:/mnt";
    Case::new(
        "tune/refused/container",
        "in systemd-nspawn apply names the container and changes nothing",
        Machine::disk(),
    )
    .tier(Tier::Three)
    .limit_s(300)
    .script(script(&format!(
        "track first; track before
         run apply {nspawn} --pipe /mnt/bin/rtproof tune apply --cpus 0 --yes
         track after",
    )))
    .expect(|seen, expect| refused(seen, expect, &["container"]))
    .mutation("outside", "apply: exit code", |case| {
        let script = &mut case.boots[0].script;
        if let Some((before, rest)) = script.clone().split_once("run apply ") {
            let after = rest.split_once("/mnt/bin/").map_or(rest, |(_, after)| after);
            *script = format!("{before}run apply {after}");
        }
    })
}
