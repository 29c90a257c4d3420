//! Where and how a worker runs: on exactly the load CPUs, never with a real-time policy, first in
//! line when memory runs out. Settled by the worker itself, because nothing of it can be set
//! between fork and exec without unsafe code, and because it must not inherit the place of its
//! parent.

use rtproof_host::CpuList;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::tree;
use crate::failure::Failure;

/// Real-time policies by number: FIFO, RR, DEADLINE (linux/sched.h).
const REAL_TIME: [u32; 3] = [1, 2, 6];

/// Pins the calling thread, and what it starts from now on, to exactly these CPUs.
///
/// # Errors
/// The list is empty, or the kernel does not give all of its CPUs.
pub(super) fn pin(cpus: &CpuList) -> Result<(), Failure> {
    if cpus.is_empty() {
        return Err("no load CPUs: a load needs at least one, e.g. 0".into());
    }
    let mut wanted = CpuSet::new();
    for cpu in cpus.iter() {
        if cpu as usize >= CpuSet::MAX_CPU {
            return Err(Failure(format!(
                "load CPU {cpu}: at most CPU {} can be used",
                CpuSet::MAX_CPU - 1
            )));
        }
        wanted.set(cpu as usize);
    }
    let plural = if cpus.len() == 1 { "" } else { "s" };
    let advice = "use CPUs that are online (/sys/devices/system/cpu/online) and that this session \
                  may use (Cpus_allowed_list in /proc/self/status)";
    sched_setaffinity(None, &wanted)
        .map_err(|error| format!("cannot run on the load CPU{plural} {cpus}: {error}; {advice}"))?;
    let given = sched_getaffinity(None).map_err(|error| format!("affinity: {error}"))?;
    if given != wanted {
        let given = (0u32..).take(CpuSet::MAX_CPU).filter(|&cpu| given.is_set(cpu as usize));
        let given = CpuList::new(given);
        return Err(Failure(format!(
            "load CPU{plural} {cpus} wanted, the kernel gives {given}; {advice}"
        )));
    }
    Ok(())
}

/// Pins the calling thread to one CPU.
///
/// # Errors
/// The kernel does not give it.
pub(super) fn pin_thread(cpu: u32) -> Result<(), Failure> {
    pin(&CpuList::new([cpu]))
}

/// Settles the calling process before it starts a thread.
///
/// # Errors
/// It has a real-time policy, or cannot have the load CPUs.
pub(super) fn settle(name: &str, cpus: &CpuList) -> Result<(), Failure> {
    // Traces and ps show who disturbed: `rtproof-memory`, not the `exe` of /proc/self/exe.
    set_name(name);
    if let Some(policy) = tree::own().map(|own| own.policy).filter(|p| REAL_TIME.contains(p)) {
        return Err(Failure(format!(
            "a load must not be real-time and inherited policy {policy} (SCHED_OTHER is 0): start \
             it from a SCHED_OTHER thread, or with reset-on-fork"
        )));
    }
    pin(cpus)?;
    sacrifice();
    Ok(())
}

/// Names the calling thread `rtproof-NAME`, cut to the kernel's 15 bytes.
pub(super) fn set_name(name: &str) {
    let name: String = format!("rtproof-{name}").chars().take(15).collect();
    if let Ok(name) = std::ffi::CString::new(name) {
        // A name is a help to the reader, not a condition.
        let _ = rustix::thread::set_name(&name);
    }
}

/// Where memory runs out, the kernel shall end this process and not the user's.
#[expect(clippy::disallowed_methods, reason = "this process's own setting, not the machine's")]
pub(crate) fn sacrifice() {
    // Raising one's own score needs no privilege; without /proc it stays as it is.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_cpus_are_named() {
        assert!(pin(&CpuList::default()).unwrap_err().0.contains("at least one"));
        let error = pin(&CpuList::new([8191])).unwrap_err();
        assert!(error.0.contains("8191") && error.0.contains("1023"), "{error}");
        let error = pin(&CpuList::new([0, 1022])).unwrap_err();
        assert!(error.0.contains("0,1022") && error.0.contains("gives 0;"), "{error}");
        let error = pin_thread(1022).unwrap_err();
        assert!(error.0.contains("online"), "{error}");
    }
}
