//! The calling thread as the kernel has it: its id, its CPUs, its policy, its locked code.

use std::{cell::Cell, io};

use rustix::thread::{CpuSet, sched_setaffinity};

use rtproof_host::{
    CpuList,
    tune::{Scheduling, Tasks},
};

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
pub fn become_ordinary() -> io::Result<bool> {
    let (policy, _) = sys::policy()?;
    sys::set_policy(Policy::Other, 0)?;
    Ok(policy != Policy::Other)
}

/// Restricts the calling thread to one CPU.
pub(crate) fn pin(cpu: u32) -> io::Result<()> {
    pin_all(&[cpu])
}

/// Restricts the calling thread to some CPUs.
///
/// # Errors
/// EINVAL when none of them is online and allowed.
pub fn pin_all(cpus: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu as usize >= CpuSet::MAX_CPU {
            let text = format!("CPU {cpu}: numbers up to {} are handled", CpuSet::MAX_CPU - 1);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
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
pub(crate) fn lock_code(address: usize) -> io::Result<()> {
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

// Scheduling of any task of the live machine, for `rtproof_host::tune`: read as a whole, set in
// part, restored exactly.

/// Reads and sets scheduling in the running kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct LiveTasks;

/// Policies by their number (include/uapi/linux/sched.h).
const POLICIES: &[(u32, &str)] =
    &[(0, "other"), (1, "fifo"), (2, "rr"), (3, "batch"), (5, "idle"), (6, "deadline"), (7, "ext")];

/// SCHED_FLAG_RESET_ON_FORK.
const RESET_ON_FORK: u64 = 1;

/// SCHED_FLAG_RECLAIM and SCHED_FLAG_DL_OVERRUN, which stay with a deadline.
const OF_DEADLINE: u64 = 6;

impl Tasks for LiveTasks {
    fn scheduling(&self, tid: u32) -> io::Result<Scheduling> {
        let attr = sys::sched_attr(tid)?;
        let name = POLICIES.iter().find(|(number, _)| *number == attr.sched_policy);
        let (_, policy) = name.ok_or_else(|| {
            io::Error::other(format!("policy {} is not known here", attr.sched_policy))
        })?;
        let is_real_time = matches!(*policy, "fifo" | "rr");
        let is_fair = matches!(*policy, "other" | "batch" | "ext");
        let is_deadline = *policy == "deadline";
        Ok(Scheduling {
            policy: Some((*policy).into()),
            priority: is_real_time.then_some(attr.sched_priority),
            nice: is_fair.then_some(attr.sched_nice),
            deadline_ns: is_deadline.then_some([
                attr.sched_runtime,
                attr.sched_deadline,
                attr.sched_period,
            ]),
            reset_on_fork: Some(attr.sched_flags & RESET_ON_FORK != 0),
            cpus: Some(CpuList::new(sys::affinity(tid)?)),
        })
    }

    fn set(&self, tid: u32, to: &Scheduling) -> io::Result<()> {
        let policy = Scheduling { cpus: None, ..to.clone() };
        if policy != Scheduling::default() {
            sys::set_sched_attr(tid, &with(sys::sched_attr(tid)?, to)?)?;
        }
        match &to.cpus {
            Some(cpus) => sys::set_affinity(tid, cpus.iter()),
            None => Ok(()),
        }
    }
}

/// The kernel's structure with what is to be set in it.
fn with(now: libc::sched_attr, to: &Scheduling) -> io::Result<libc::sched_attr> {
    let wrong = |what: String| io::Error::new(io::ErrorKind::InvalidInput, what);
    let mut attr = now;
    if let Some(policy) = &to.policy {
        let number = POLICIES.iter().find(|(_, name)| name == policy).map(|(number, _)| *number);
        attr.sched_policy = number.ok_or_else(|| {
            wrong(format!(
                "\"{policy}\" is no policy; expected other, fifo, rr, batch, idle, \
                           deadline or ext"
            ))
        })?;
    }
    let policy = POLICIES.iter().find(|(number, _)| *number == attr.sched_policy);
    let policy = policy.map_or("", |(_, name)| name);
    match to.reset_on_fork {
        Some(true) => attr.sched_flags |= RESET_ON_FORK,
        Some(false) => attr.sched_flags &= !RESET_ON_FORK,
        None => {}
    }
    attr.sched_flags &=
        if policy == "deadline" { RESET_ON_FORK | OF_DEADLINE } else { RESET_ON_FORK };
    match policy {
        "fifo" | "rr" => {
            attr.sched_priority = to.priority.unwrap_or(now.sched_priority);
            if !(1..=99).contains(&attr.sched_priority) {
                let priority = attr.sched_priority;
                return Err(wrong(format!("priority {priority} of {policy}; expected 1 to 99")));
            }
        }
        _ => attr.sched_priority = 0,
    }
    if matches!(policy, "other" | "batch" | "ext") {
        attr.sched_nice = to.nice.unwrap_or(now.sched_nice);
    }
    if policy == "deadline" {
        let given = [now.sched_runtime, now.sched_deadline, now.sched_period];
        [attr.sched_runtime, attr.sched_deadline, attr.sched_period] =
            to.deadline_ns.unwrap_or(given);
    } else {
        // Since Linux 6.12 a fair task reads its slice here; written back it would be a slice of
        // its own, which few have. 0 is the kernel's.
        attr.sched_runtime = 0;
        attr.sched_deadline = 0;
        attr.sched_period = 0;
    }
    Ok(attr)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Runs a check against a thread of our own, which waits meanwhile.
    fn with_thread(check: impl FnOnce(u32)) {
        let (send_tid, tid) = mpsc::channel();
        let (end, wait) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let tid = rustix::thread::gettid().as_raw_nonzero().get();
            send_tid.send(tid.cast_unsigned()).unwrap();
            let _ = wait.recv();
        });
        check(tid.recv().unwrap());
        drop(end);
        thread.join().unwrap();
    }

    #[test]
    fn a_thread_is_set_and_put_back() {
        with_thread(|tid| {
            let before = LiveTasks.scheduling(tid).unwrap();
            assert_eq!(before.policy.as_deref(), Some("other"));
            let one = CpuList::new(before.cpus.as_ref().unwrap().iter().take(1));
            let batch = Scheduling {
                policy: Some("batch".into()),
                reset_on_fork: Some(true),
                ..Scheduling::default()
            };
            LiveTasks.set(tid, &batch).unwrap();
            let cpus = Scheduling { cpus: Some(one.clone()), ..Scheduling::default() };
            LiveTasks.set(tid, &cpus).unwrap();
            let now = LiveTasks.scheduling(tid).unwrap();
            let wanted = Scheduling {
                policy: Some("batch".into()),
                reset_on_fork: Some(true),
                cpus: Some(one),
                ..before.clone()
            };
            assert_eq!(now, wanted);
            // Without CAP_SYS_NICE the kernel keeps the flag: whoever has it puts all of it back.
            let back = LiveTasks.set(tid, &before);
            if rustix::process::geteuid().is_root() {
                back.unwrap();
                assert_eq!(LiveTasks.scheduling(tid).unwrap(), before);
            }
        });
    }

    #[test]
    fn real_time_and_deadline_are_set_and_put_back() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        with_thread(|tid| {
            let nice = Scheduling { nice: Some(3), ..Scheduling::default() };
            LiveTasks.set(tid, &nice).unwrap();
            let before = LiveTasks.scheduling(tid).unwrap();
            assert_eq!(before.nice, Some(3));
            for (policy, priority, deadline_ns) in [
                ("fifo", Some(7), None),
                ("rr", Some(9), None),
                ("deadline", None, Some([1_000_000, 50_000_000, 100_000_000])),
            ] {
                let to = Scheduling {
                    policy: Some(policy.into()),
                    priority,
                    deadline_ns,
                    ..Scheduling::default()
                };
                match LiveTasks.set(tid, &to) {
                    Ok(()) => {}
                    // A group or container without a share of real time.
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
                    Err(error) => panic!("{policy}: {error}"),
                }
                let now = LiveTasks.scheduling(tid).unwrap();
                assert_eq!(now.policy.as_deref(), Some(policy));
                assert_eq!(
                    (now.priority, now.nice, now.deadline_ns),
                    (priority, None, deadline_ns)
                );
                assert_eq!(now.cpus, before.cpus);
                LiveTasks.set(tid, &before).unwrap();
                assert_eq!(LiveTasks.scheduling(tid).unwrap(), before);
            }
        });
    }

    #[test]
    fn what_is_no_scheduling_is_refused() {
        let set = |policy: &str, priority| {
            let policy = Some(policy.to_owned());
            let to = Scheduling { policy, priority, ..Scheduling::default() };
            with(sys::sched_attr(0).unwrap(), &to).unwrap_err().to_string()
        };
        assert!(set("fast", None).contains("expected other, fifo"));
        assert!(set("fifo", None).contains("priority 0 of fifo; expected 1 to 99"));
        assert!(set("rr", Some(100)).contains("priority 100"));
        // No thread has the largest id.
        assert!(LiveTasks.scheduling(u32::MAX >> 1).is_err());
    }
}
