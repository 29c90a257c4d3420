//! A program that `rtproof run` starts: in a partition of cgroup v2, whose kind the policy needs,
//! and the machine as it was at the end, however that comes.

use anyhow::Result;

use crate::case::Case;
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::Evidence;

/// What a program looks at from inside, and the state of the machine. Threads of interrupts are
/// left out: the kernel moves them with their interrupt, when that next fires.
const PROGRAMS: &str = "cat >/tmp/inside.sh <<'END'
grep Cpus_allowed_list /proc/self/status
cat /proc/self/cgroup
cat /sys/fs/cgroup/rtproof-run-*/cpuset.cpus.partition
echo runtime $(cat /proc/sys/kernel/sched_rt_runtime_us)
echo keyboard $(cat /proc/irq/1/smp_affinity_list)
awk '{ print \"policy\", $41, \"priority\", $40 }' /proc/self/stat
END
cat >/tmp/state.sh <<'END'
ls -d /sys/fs/cgroup/rtproof-run-* 2>/dev/null
cat /sys/fs/cgroup/cgroup.subtree_control
cat /sys/fs/cgroup/cpuset.cpus.effective
cat /proc/sys/kernel/sched_rt_runtime_us
cat /sys/devices/virtual/workqueue/cpumask
for file in /proc/irq/*/smp_affinity_list; do echo $file $(cat $file); done
for task in /proc/[0-9]*; do
    name=$(cat $task/comm 2>/dev/null)
    case $name in kworker*|irq/*|sh|cat|lab*) continue;; esac
    [ -s $task/cmdline ] || echo $name $(grep Cpus_allowed_list $task/status)
done 2>/dev/null
END";

/// Rounds that are killed.
const ROUNDS: i32 = 12;

pub(super) fn case(kernel: &'static str) -> Case {
    Case::new(
        format!("launch/partition/{kernel}"),
        "a program gets a partition of its kind, and the machine is as before at its end, after a \
         kill at any moment, too",
        Machine::new(kernel).cpus(4),
    )
    .script(format!(
        "{PROGRAMS}
         run before sh /tmp/state.sh
         run fifo rtproof run --cpus 2-3 --no-trace -- sh /tmp/inside.sh
         run after sh /tmp/state.sh
         run deadline rtproof run --cpus 2-3 --no-trace --runtime 2ms --period 100ms -- \
         sh /tmp/inside.sh
         run taken sh -c 'rtproof run --cpus 2-3 --no-trace -- sleep 8 & sleep 5; \
         rtproof run --cpus 3 --tune none --no-trace -- true; echo $?; wait'
         for round in $(seq {ROUNDS}); do
             rtproof run --cpus 2-3 --no-trace -- sleep 3 >/dev/null 2>&1 &
             usleep $((round * 250000))
             kill -KILL $!
             wait
         done
         sleep 6
         run status rtproof tune status
         run last sh /tmp/state.sh"
    ))
    .expect(as_before)
    .other_word(
        "-- sh /tmp/inside.sh",
        "--tune none -- sh /tmp/inside.sh",
        "interrupts keep away",
    )
}

fn as_before(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let before = seen.out("before")?;
    let fifo = seen.out("fifo")?;
    let said = seen.err("fifo")?;
    expect.equal("fifo: exit code", seen.rc("fifo")?, 0);
    expect.contains("fifo: its CPUs", &fifo, "Cpus_allowed_list:\t2-3");
    expect.contains("fifo: its group", &fifo, "rtproof-run-");
    expect.contains("fifo: kind of the partition", &fifo, "isolated\n");
    expect.lacks("fifo: the partition holds", &fifo, "invalid");
    // From 7.2 on the limit is the whole period, which is none: it stays.
    let is_off = fifo.contains("runtime -1\n") || fifo.contains("runtime 1000000\n");
    expect.that("throttling is off", "runtime -1, or the whole period", is_off, &fifo);
    expect.contains("interrupts keep away", &fifo, "keyboard 0-1\n");
    expect.contains("fifo: policy", &fifo, "policy 1 priority 80");
    expect.contains("fifo: all is undone", &said, "none is left");
    expect.equal("after", seen.out("after")?, before.clone());
    let deadline = seen.out("deadline")?;
    expect.equal("deadline: exit code", seen.rc("deadline")?, 0);
    expect.contains("deadline: kind of the partition", &deadline, "root\n");
    let taken = seen.err("taken")? + &seen.out("taken")?;
    expect.contains("taken: another partition", &taken, "belongs to the partition");
    expect.contains("taken: exit code", &taken, "125");
    expect.contains("nothing is applied", &seen.out("status")?, "nothing of rtproof is applied");
    expect.equal("after all kills", seen.out("last")?, before);
    Ok(())
}
