//! The calling thread as the kernel has it: its id, its CPUs, its policy, its locked code.

use std::cell::Cell;

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::{Policy, sys};

/// Code of the hot path that is locked.
const CODE_BYTES: usize = 16 * 1024;

thread_local! {
    static ARMED: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is measuring: it may not allocate, lock or call the system beyond
/// clock and sleep. Tests hang their counting allocators on this.
pub fn is_armed() -> bool {
    ARMED.get()
}

/// Says that the calling thread measures, or no longer.
pub(crate) fn set_armed(armed: bool) {
    ARMED.set(armed);
}

/// Id of the calling thread.
pub(crate) fn tid() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Makes the calling thread an ordinary one, and what it starts from now on. Returns whether it was
/// not: rtproof was started with a real-time policy.
///
/// # Errors
/// If the kernel refuses (not expected when a thread lowers itself).
pub fn become_ordinary() -> std::io::Result<bool> {
    let (policy, _) = sys::policy()?;
    sys::set_policy(Policy::Other, 0)?;
    Ok(policy != Policy::Other)
}

/// Restricts the calling thread to one CPU.
pub(crate) fn pin(cpu: u32) -> std::io::Result<()> {
    pin_all(&[cpu])
}

/// Restricts the calling thread to some CPUs.
///
/// # Errors
/// EINVAL when none of them is online and allowed.
pub fn pin_all(cpus: &[u32]) -> std::io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu as usize >= CpuSet::MAX_CPU {
            let text = format!("CPU {cpu}: numbers up to {} are handled", CpuSet::MAX_CPU - 1);
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, text));
        }
        set.set(cpu as usize);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// Moves the calling thread off a CPU, where it may use another.
pub(crate) fn leave(cpu: u32) {
    let mut others = sys::affinity(0).unwrap_or_default();
    others.retain(|&other| other != cpu);
    if !others.is_empty() {
        let _ = pin_all(&others);
    }
}

/// Locks the first pages of a function; fewer where the program ends before.
pub(crate) fn lock_code(address: usize) -> std::io::Result<()> {
    let whole = sys::lock(address, CODE_BYTES);
    whole.or_else(|_| sys::lock(address, 1))
}

/// Raises the calling thread as far as it may: the requested priority, else the highest allowed.
/// Returns why it is not as requested.
pub(crate) fn raise(policy: Policy, priority: u32) -> Option<String> {
    let error = sys::set_policy(policy, priority).err()?;
    let limit = sys::rtprio_limit().min(priority);
    if policy.has_priority() && limit > 0 {
        // What is in force is read back by the caller; failing again changes nothing.
        let _ = sys::set_policy(policy, limit);
    }
    Some(error.to_string())
}
