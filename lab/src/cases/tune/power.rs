//! Frequencies and idle states, from firmware tables.

use super::tracking::{as_before, script};
use crate::case::Case;
use crate::machine::Machine;

pub(super) fn cases() -> Vec<Case> {
    vec![frequencies(), idle_states()]
}

fn machine() -> Machine {
    Machine::new("rt-6.1").cpus(2).power_states()
}

/// The lower limit is raised to the upper one, and goes back before the governor does.
fn frequencies() -> Case {
    Case::new(
        "tune/cpufreq/rt-6.1",
        "governor and both limits of the frequency, from a range below the wanted one, and back",
        machine(),
    )
    .script(script(
        "cd /sys/devices/system/cpu/cpu1/cpufreq
         echo powersave >scaling_governor
         tr ' ' '\\n' <scaling_available_frequencies | grep . | sort -n | sed -n 2p >scaling_max_freq
         cd /tmp
         track first; track before
         run apply rtproof tune apply --cpus 1 --yes cpufreq-governor cpufreq-minmax
         (cd /sys/devices/system/cpu/cpu1/cpufreq
cat scaling_governor
          [ $(cat scaling_min_freq) = $(cat scaling_max_freq) ] && echo fixed) >/host/during
         run undo rtproof tune undo
         track after",
    ))
    .expect(|seen, expect| {
        expect.equal("apply: exit code", seen.rc("apply")?, 0);
        expect.equal("during", seen.text("during")?.trim(), "performance\nfixed");
        expect.equal("undo: exit code", seen.rc("undo")?, 0);
        as_before(seen, expect, ["first", "before", "after"])
    })
    .other_word("run apply rtproof", "run apply echo", "during")
}

/// Idle states in two of the three ways: each state's own switch, and the CPU's limit. The third, a
/// unit that holds /dev/cpu_dma_latency, needs systemd: tune/units.
fn idle_states() -> Case {
    Case::new(
        "tune/cpuidle/rt-6.1",
        "deep idle states are switched off one by one, and the CPU's limit on its exit is set; one \
         that was off before stays off",
        machine(),
    )
    .script(script(
        "echo 1 >/sys/devices/system/cpu/cpu1/cpuidle/state3/disable
         echo 170 >/sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us
         track first; track before
         run apply rtproof tune apply --cpus 1 --yes cpuidle-states pm-qos-resume
         (cd /sys/devices/system/cpu/cpu1; cat cpuidle/state[23]/disable
          cat power/pm_qos_resume_latency_us) >/host/during
         run undo rtproof tune undo
         track after",
    ))
    .expect(|seen, expect| {
        expect.equal("apply: exit code", seen.rc("apply")?, 0);
        let during = seen.text("during")?;
        expect.equal("during: states", during.lines().take(2).collect::<Vec<_>>(), vec!["1", "1"]);
        expect.that("during: limit", "not 170", during.lines().nth(2) != Some("170"), &during);
        expect.equal("undo: exit code", seen.rc("undo")?, 0);
        as_before(seen, expect, ["first", "before", "after"])
    })
    .other_word("run apply rtproof", "run apply echo", "during")
}
