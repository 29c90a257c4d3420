//! A stall of 50 ms, planted by stopping the whole process from outside: seen by all that can.

use std::process::Command;

use super::*;

/// How long the process is stopped.
const STALL_NS: u64 = 50_000_000;

/// Has a shell stop this process for 50 ms, a little later.
fn plant() -> std::process::Child {
    let pid = std::process::id();
    let script = format!("sleep 0.1; kill -STOP {pid}; sleep 0.05; kill -CONT {pid}");
    Command::new("sh").args(["-c", &script]).spawn().expect("a shell")
}

#[test]
fn a_stopped_process_is_seen_by_every_workload() {
    let _alone = alone();
    for text in [
        "timer-wakeup",
        "nanosleep-relative",
        "usleep",
        "setitimer",
        "timerfd",
        "posix-timer",
        "busy-loop",
    ] {
        let mut plan = plan(text);
        if text == "busy-loop" {
            (plan.policy, plan.priority) = (Policy::Other, 0);
        }
        let mut stopper = plant();
        let got = run(&plan).remove(0);
        stopper.wait().expect("the shell ends");
        assert!(got.max() >= STALL_NS * 9 / 10, "{text}: {got:?}");
        assert!(got.spikes.iter().any(|&ns| ns >= STALL_NS * 9 / 10), "{text}: {got:?}");
        if text != "busy-loop" {
            assert!(got.totals.missed >= 44, "{text}: {got:?}");
            assert!(got.totals.missed_sum_ns >= 44 * 22 * 1_000_000, "{text}: {got:?}");
        }
    }
}

#[test]
fn pieces_of_work_that_a_stall_kept_from_beginning_are_missed() {
    let _alone = alone();
    for text in ["registers", "memory", "kill", "clock-gettime", "futex", "mutex-pi"] {
        let mut stopper = plant();
        let got = run(&plan(text)).remove(0);
        stopper.wait().expect("the shell ends");
        // Stopped in its sleep the piece itself was not longer; what was due then is missed.
        assert!(got.totals.missed >= 44, "{text}: {got:?}");
    }
}
