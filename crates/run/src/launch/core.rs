//! Core scheduling: a cookie of the program's own, with which no other task runs on the other
//! threads of its core at the same time (kernel/sched/core_sched.c). It ends with the program.

use rtproof_host::{CpuList, Facts};
use rustix::{
    io::Errno,
    thread::{CoreSchedulingScope, core_scheduling_cookie, create_core_scheduling_cookie, gettid},
};

/// The cookie of this thread, 0 for none: it shows whether the kernel has core scheduling.
///
/// # Errors
/// It has none: why, and what to do.
pub(super) fn cookie() -> Result<u64, String> {
    core_scheduling_cookie(gettid(), CoreSchedulingScope::Thread).map_err(refused)
}

/// Gives this thread a cookie, which all that it starts inherits, and reads it back.
pub(super) fn make() -> anyhow::Result<()> {
    let before = cookie().map_err(anyhow::Error::msg)?;
    create_core_scheduling_cookie(gettid(), CoreSchedulingScope::Thread)
        .map_err(|error| anyhow::Error::msg(refused(error)))?;
    let now = cookie().map_err(anyhow::Error::msg)?;
    anyhow::ensure!(now != 0 && now != before, "PR_SCHED_CORE_CREATE: no new cookie came of it");
    Ok(())
}

fn refused(error: Errno) -> String {
    let why = match error {
        Errno::NODEV => {
            "no core has two threads that are online (SMT is off, or there is none): no other task \
             shares a core with the program anyway; leave --core-sched out"
        }
        Errno::INVAL => {
            "this kernel has no core scheduling: it came with Linux 5.14 and needs \
             CONFIG_SCHED_CORE; give the program whole cores (--cpus with both threads)"
        }
        _ => "the kernel refuses it: is this a container with a seccomp filter?",
    };
    format!("prctl(PR_SCHED_CORE): {error}; {why}")
}

/// What the cookie means for these CPUs, where their cores are known.
pub(super) fn note(facts: &Facts, cpus: &CpuList) -> Option<String> {
    let mut others = CpuList::default();
    for number in cpus.iter() {
        let cpu = facts.cpus.cpus.iter().find(|cpu| cpu.id == number)?;
        others = others.union(&cpu.siblings.value()?.difference(cpus));
    }
    Some(match others.is_empty() {
        true => format!("No other CPU shares a core with {}: none idles.", cpus.phrase()),
        false => format!(
            "Core scheduling: while the program runs on {}, nothing runs on the other thread of \
             that core ({}); while a task of higher priority runs there, the program waits.",
            cpus.phrase(),
            others.phrase()
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_to_do() {
        assert!(refused(Errno::NODEV).contains("leave --core-sched out"));
        assert!(refused(Errno::INVAL).contains("CONFIG_SCHED_CORE"));
        assert!(refused(Errno::PERM).contains("seccomp"));
    }

    #[test]
    fn what_the_kernel_has_can_be_set_and_what_it_lacks_is_refused() {
        // A thread of its own, which ends with its cookie.
        let made = std::thread::spawn(make).join().unwrap();
        assert_eq!(made.is_ok(), cookie().is_ok(), "{made:?}");
    }
}
