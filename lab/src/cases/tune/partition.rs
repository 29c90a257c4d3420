//! A partition of CPUs (control groups, version 2): a group, the controller and two of the group's
//! files that are there only once the group is; by the plan, to the letter. And one that another
//! group has made invalid.

use super::tracking::{as_before, script};
use crate::case::Case;
use crate::machine::Machine;

pub(super) fn cases() -> Vec<Case> {
    vec![partition("rt-6.12")]
}

fn partition(kernel: &'static str) -> Case {
    Case::new(
        format!("tune/partition/{kernel}"),
        "a partition of a CPU is planned with its group, isolates, and goes with everything that \
         came with it; one that has turned invalid is told, and taken back too",
        Machine::new(kernel).cpus(2).multi_threaded(),
    )
    .script(script(
        "top=/sys/fs/cgroup
         printf 'kind = \"periodic\"\\n[choices]\\nisolation = \"cpuset\"\\n' >/tmp/own.toml
         left() { cat $top/cgroup.subtree_control; [ ! -e $top/rtproof ] || echo rtproof; }
         left >/host/left.before
         track first; track before
         run plan rtproof tune plan cpuset-partition --profile /tmp/own.toml --cpus 1 --json
         cp /host/plan.out /tmp/plan.json
         run apply rtproof tune apply --plan /tmp/plan.json --yes
         cat $top/rtproof/cpuset.cpus.partition $top/cpuset.cpus.isolated >/host/during
         run status rtproof tune status
         run undo rtproof tune undo
         track after
         left >/host/left.after
         run second rtproof tune apply cpuset-partition --profile /tmp/own.toml --cpus 1 --yes
         mkdir $top/other; echo 1 >$top/other/cpuset.cpus
         cat $top/rtproof/cpuset.cpus.partition >/host/invalid
         run told rtproof tune status
         run back rtproof tune undo
         rmdir $top/other
         left >/host/left.last",
    ))
    .expect(|seen, expect| {
        expect.equal("plan: exit code", seen.rc("plan")?, 0);
        expect.equal("apply: exit code", seen.rc("apply")?, 0);
        expect.equal("during", seen.text("during")?.trim(), "isolated\n1");
        expect.equal("status: exit code", seen.rc("status")?, 0);
        expect.equal("undo: exit code", seen.rc("undo")?, 0);
        as_before(seen, expect, ["first", "before", "after"])?;
        let left = seen.text("left.before")?;
        expect.equal("groups after", seen.text("left.after")?, left.clone());
        expect.equal("second: exit code", seen.rc("second")?, 0);
        expect.contains("another's group takes its CPU", &seen.text("invalid")?, "invalid");
        expect.equal("status of it: exit code", seen.rc("told")?, 2);
        expect.contains("status of it", &seen.out("told")?, "isolated invalid");
        expect.equal("undo of it: exit code", seen.rc("back")?, 0);
        expect.equal("groups at the end", seen.text("left.last")?, left);
        Ok(())
    })
    .other_word("run apply rtproof", "run apply echo", "during")
}
