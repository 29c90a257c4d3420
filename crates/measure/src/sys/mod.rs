//! The calls that no safe crate wraps. The only unsafe code of the house.

pub(crate) mod perf;
pub(crate) mod signals;

use std::{
    io,
    mem::MaybeUninit,
    os::fd::{AsRawFd, BorrowedFd},
};

use rustix::{thread::ClockId, time::Timespec};

#[cfg(all(target_pointer_width = "32", target_env = "gnu"))]
use self::time64::{clock_getres, clock_gettime, clock_nanosleep, timespec};
use crate::Policy;
#[cfg(not(all(target_pointer_width = "32", target_env = "gnu")))]
use libc::{clock_getres, clock_gettime, clock_nanosleep, timespec};

/// SCHED_RESET_ON_FORK (include/uapi/linux/sched.h): children of a measuring thread are ordinary.
const RESET_ON_FORK: i32 = 0x4000_0000;

const PAGE: usize = 4096;

/// CLOCK_MONOTONIC in nanoseconds.
#[inline(always)]
pub(crate) fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(ClockId::Monotonic);
    // Monotonic time is not negative, and 2^64 ns are 584 years.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Nanoseconds as the kernel takes them.
#[inline(always)]
pub(crate) fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: (ns / 1_000_000_000).cast_signed(),
        tv_nsec: (ns % 1_000_000_000).cast_signed(),
    }
}

/// usleep(3), the C library's own.
#[inline(always)]
pub(crate) fn usleep(us: u32) {
    // SAFETY: it takes a number and waits.
    unsafe { libc::usleep(us) };
}

/// Gives the calling thread a policy and a priority.
///
/// # Errors
/// EPERM without the right to it, EINVAL for a priority outside 1 to 99.
pub(crate) fn set_policy(policy: Policy, priority: u32) -> io::Result<()> {
    set_policy_with(policy, priority, RESET_ON_FORK)
}

/// The same, so that what the thread starts has the policy too.
pub(crate) fn set_policy_for_children(policy: Policy, priority: u32) -> io::Result<()> {
    set_policy_with(policy, priority, 0)
}

fn set_policy_with(policy: Policy, priority: u32, flag: i32) -> io::Result<()> {
    let number = match policy {
        Policy::Fifo => libc::SCHED_FIFO | flag,
        Policy::Rr => libc::SCHED_RR | flag,
        Policy::Other => libc::SCHED_OTHER,
        // SCHED_DEADLINE has times, not a priority; no measuring thread has the others.
        Policy::Deadline | Policy::Batch | Policy::Idle | Policy::Ext => {
            return Err(io::ErrorKind::InvalidInput.into());
        }
    };
    let priority = i32::try_from(priority).map_err(|_| io::ErrorKind::InvalidInput)?;
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: `param` is a valid sched_param that outlives the call; 0 is the calling thread.
    let result = unsafe { libc::sched_setscheduler(0, number, &raw const param) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes another thread of this process an ordinary one that runs on any CPU but `cpu`, where
/// something outranks it: it gets to run elsewhere, and ends.
pub(crate) fn release(tid: u32, cpu: u32) {
    let param = libc::sched_param { sched_priority: 0 };
    let Ok(tid) = i32::try_from(tid) else { return };
    // SAFETY: `param` is a valid sched_param that outlives the call; a thread that is gone is
    // ESRCH.
    unsafe { libc::sched_setscheduler(tid, libc::SCHED_OTHER, &raw const param) };
    let mut all = rustix::thread::CpuSet::new();
    let others = |&other: &usize| other != cpu as usize;
    (0..rustix::thread::CpuSet::MAX_CPU).filter(others).for_each(|other| all.set(other));
    let _ = rustix::thread::sched_setaffinity(rustix::process::Pid::from_raw(tid), &all);
}

/// Policy and priority in force for the calling thread.
pub(crate) fn policy() -> io::Result<(Policy, u32)> {
    policy_of(0)
}

/// Policy and priority in force for a task; 0 is the calling thread.
pub(crate) fn policy_of(tid: u32) -> io::Result<(Policy, u32)> {
    let mut param = libc::sched_param { sched_priority: 0 };
    let tid = tid.cast_signed();
    // SAFETY: both calls ask about a task; `param` is valid for the write.
    let (number, result) =
        unsafe { (libc::sched_getscheduler(tid), libc::sched_getparam(tid, &raw mut param)) };
    if number < 0 || result < 0 {
        return Err(io::Error::last_os_error());
    }
    let policy = match number & !RESET_ON_FORK {
        libc::SCHED_FIFO => Policy::Fifo,
        libc::SCHED_RR => Policy::Rr,
        libc::SCHED_DEADLINE => Policy::Deadline,
        _ => Policy::Other,
    };
    Ok((policy, u32::try_from(param.sched_priority).unwrap_or(0)))
}

/// Locks the pages that hold `bytes` bytes from `address` into memory and faults them in.
///
/// # Errors
/// ENOMEM above RLIMIT_MEMLOCK or where nothing is mapped, EPERM without any right to lock.
pub(crate) fn lock(address: usize, bytes: usize) -> io::Result<()> {
    // The place of an empty slice is made up, and nothing is mapped there.
    if bytes == 0 {
        return Ok(());
    }
    let start = address & !(PAGE - 1);
    let length = (address + bytes).next_multiple_of(PAGE) - start;
    // SAFETY: mlock neither reads nor writes through the pointer; an unmapped range is ENOMEM.
    let result = unsafe { libc::mlock(start as *const libc::c_void, length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Stack of the calling thread: lowest address and size in bytes, without the guard page.
///
/// # Errors
/// When the C library cannot tell.
pub(crate) fn stack() -> io::Result<(usize, usize)> {
    let mut attr = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut address, mut size, mut guard) = (std::ptr::null_mut(), 0, 0);
    // SAFETY: `attr` is initialised by pthread_getattr_np before it is read and destroyed after;
    // the out-pointers are valid for the writes.
    let result = unsafe {
        let error = libc::pthread_getattr_np(libc::pthread_self(), attr.as_mut_ptr());
        if error == 0 {
            libc::pthread_attr_getguardsize(attr.as_ptr(), &raw mut guard);
            let error = libc::pthread_attr_getstack(attr.as_ptr(), &raw mut address, &raw mut size);
            libc::pthread_attr_destroy(attr.as_mut_ptr());
            error
        } else {
            error
        }
    };
    if result == 0 {
        // glibc before 2.27 counted the guard into the size; skipping it does no harm later.
        Ok((address as usize + guard, size.saturating_sub(guard)))
    } else {
        Err(io::Error::from_raw_os_error(result))
    }
}

/// Blocks every signal in the calling thread: they go to the threads that wait for them.
pub(crate) fn block_signals() {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset initialises the set that pthread_sigmask reads; no old set is asked for.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
    }
}

/// What a thread has used up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadUsage {
    pub(crate) faults_minor: u64,
    pub(crate) faults_major: u64,
    pub(crate) cpu_time_ns: u64,
    pub(crate) preemptions: u64,
}

/// Usage of the calling thread so far.
pub(crate) fn usage() -> ThreadUsage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage fills `usage`; all-zero bytes are a valid rusage should it fail.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    let count = |of: libc::c_long| u64::try_from(of).unwrap_or(0);
    ThreadUsage {
        faults_minor: count(usage.ru_minflt),
        faults_major: count(usage.ru_majflt),
        cpu_time_ns: thread_cpu_ns(),
        preemptions: count(usage.ru_nivcsw),
    }
}

/// CPU time of the calling thread so far, nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Lets the heap of this process grow in large steps and never shrink, from one place for all
/// threads that are made from now on. Memory that is given back is flushed from the page tables of
/// every CPU that runs a thread of the process: the measured ones are interrupted for it. And a
/// heap of a thread's own grows by one page at a time, one system call each.
pub(crate) fn steady_heap() {
    #[cfg(target_env = "gnu")]
    for (parameter, value) in [
        (libc::M_ARENA_MAX, 1),
        (libc::M_TOP_PAD, 4 << 20),
        (libc::M_TRIM_THRESHOLD, i32::MAX),
        // The largest that is taken: half of HEAP_MAX_SIZE.
        (libc::M_MMAP_THRESHOLD, 32 << 20),
    ] {
        // SAFETY: it takes two numbers; one that it does not like it leaves out.
        unsafe { libc::mallopt(parameter, value) };
    }
}

/// Enters new namespaces, of the calling thread and those that it starts. Not for file descriptors.
pub(crate) fn unshare(what: rustix::thread::UnshareFlags) -> io::Result<()> {
    if what.contains(rustix::thread::UnshareFlags::FILES) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: file descriptors stay shared, as was made sure of.
    Ok(unsafe { rustix::thread::unshare_unsafe(what) }?)
}

/// Lets a socket send and receive through one interface only.
///
/// # Errors
/// There is no such interface, or no right to raw sockets.
pub(crate) fn bind_to_device(socket: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let (level, option) = (libc::SOL_SOCKET, libc::SO_BINDTODEVICE);
    let length = libc::socklen_t::try_from(name.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the kernel reads `length` bytes of `name`.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, option, name.as_ptr().cast(), length)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Soft limit of RLIMIT_RTPRIO: the highest priority without CAP_SYS_NICE.
pub(crate) fn rtprio_limit() -> u32 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Rtprio).current;
    limit.map_or(99, |soft| u32::try_from(soft).unwrap_or(99))
}

/// How the kernel schedules a task: the structure of sched_setattr(2) as of its first version.
pub(crate) fn sched_attr(tid: u32) -> io::Result<libc::sched_attr> {
    let mut attr = MaybeUninit::<libc::sched_attr>::zeroed();
    let size = size_of::<libc::sched_attr>();
    // SAFETY: the kernel writes at most `size` bytes to `attr`, of which all-zero bytes are valid.
    unsafe {
        match libc::syscall(libc::SYS_sched_getattr, tid, attr.as_mut_ptr(), size, 0) {
            0 => Ok(attr.assume_init()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Sets how the kernel schedules a task.
pub(crate) fn set_sched_attr(tid: u32, attr: &libc::sched_attr) -> io::Result<()> {
    let attr = libc::sched_attr { size: size_of::<libc::sched_attr>() as u32, ..*attr };
    // SAFETY: `attr` is a valid structure of the size it says, and outlives the call.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attr, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes a task a deadline task of this period: deadline and period are the cycle's, half of it is
/// runtime, so that two threads on two CPUs pass the kernel's test of admission (95 % of them).
///
/// # Errors
/// EPERM without the right to it or where the task may not run on all of its root domain, EBUSY
/// where there is no bandwidth left, EINVAL for a period below 100 us or above 4 s.
pub(crate) fn set_deadline(tid: u32, period_ns: u64) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid sched_attr, a structure of integers.
    let zero: libc::sched_attr = unsafe { std::mem::zeroed() };
    let attr = libc::sched_attr {
        sched_policy: libc::SCHED_DEADLINE.cast_unsigned(),
        sched_flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
        sched_runtime: period_ns / 2,
        sched_deadline: period_ns,
        sched_period: period_ns,
        ..zero
    };
    set_sched_attr(tid, &attr)
}

/// Words of a mask that holds every CPU that Linux can have (8192).
const MASK_WORDS: usize = 8192 / usize::BITS as usize;

/// All of them: the kernel takes those that there are, within the task's cpuset.
pub(crate) const EVERY_CPU: std::ops::Range<u32> = 0..8192;

/// The CPUs that a task may run on, of those in operation.
pub(crate) fn affinity(tid: u32) -> io::Result<Vec<u32>> {
    let mut mask = [0usize; MASK_WORDS];
    let bytes = size_of_val(&mask);
    // SAFETY: the kernel writes at most `bytes` bytes to `mask`.
    let wrote =
        unsafe { libc::syscall(libc::SYS_sched_getaffinity, tid, bytes, mask.as_mut_ptr()) };
    if wrote < 0 {
        return Err(io::Error::last_os_error());
    }
    let is_set = |cpu: &u32| {
        let cpu = *cpu as usize;
        mask[cpu / usize::BITS as usize] >> (cpu % usize::BITS as usize) & 1 == 1
    };
    Ok(EVERY_CPU.filter(is_set).collect())
}

/// Sets the CPUs that a task may run on.
///
/// # Errors
/// EINVAL where none of them is in operation, or the kernel keeps the task where it is.
pub(crate) fn set_affinity(tid: u32, cpus: impl Iterator<Item = u32>) -> io::Result<()> {
    let mut mask = [0usize; MASK_WORDS];
    for cpu in cpus {
        let cpu = cpu as usize;
        let word = mask.get_mut(cpu / usize::BITS as usize).ok_or(io::ErrorKind::InvalidInput)?;
        *word |= 1 << (cpu % usize::BITS as usize);
    }
    let bytes = size_of_val(&mask);
    // SAFETY: the kernel reads at most `bytes` bytes from `mask`.
    let result = unsafe { libc::syscall(libc::SYS_sched_setaffinity, tid, bytes, mask.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

// Clocks by number: rustix names no CLOCK_TAI. The C library of 32-bit processors has two of each
// call, and the one under the plain name has 32 bits for seconds: its dates end in 2038.

/// The calls with 64-bit time, of glibc 2.34 and later. On a kernel before 5.1 they use the others.
#[cfg(all(target_pointer_width = "32", target_env = "gnu"))]
mod time64 {
    use libc::{c_int, clockid_t};

    /// `struct __timespec64` (time/bits/types/struct_timespec.h) of little-endian processors.
    #[repr(C)]
    #[allow(non_camel_case_types, reason = "the name that it has elsewhere")]
    pub(super) struct timespec {
        pub(super) tv_sec: i64,
        pub(super) tv_nsec: i32,
        pub(super) padding: i32,
    }

    unsafe extern "C" {
        #[link_name = "__clock_gettime64"]
        pub(super) fn clock_gettime(clock: clockid_t, now: *mut timespec) -> c_int;
        #[link_name = "__clock_getres64"]
        pub(super) fn clock_getres(clock: clockid_t, step: *mut timespec) -> c_int;
        #[link_name = "__clock_nanosleep_time64"]
        pub(super) fn clock_nanosleep(
            clock: clockid_t,
            flags: c_int,
            time: *const timespec,
            left: *mut timespec,
        ) -> c_int;
    }
}

/// Number of a clock, e.g. `libc::CLOCK_TAI`.
pub(crate) type ClockNumber = libc::clockid_t;

const fn zero() -> timespec {
    // SAFETY: all-zero bytes are a valid timespec, a structure of integers.
    unsafe { std::mem::zeroed() }
}

/// A clock in nanoseconds; of one that this kernel does not have, 0.
#[inline(always)]
pub(crate) fn clock_ns(clock: ClockNumber) -> u64 {
    let mut now = zero();
    // SAFETY: `now` is valid for the write.
    unsafe { clock_gettime(clock, &raw mut now) };
    // The kernel sets no clock before 1970, and 2^64 ns are 584 years.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The step that its timers have, nanoseconds; of one that this kernel does not have, 0.
pub(crate) fn resolution_ns(clock: ClockNumber) -> u64 {
    let mut step = zero();
    // SAFETY: `step` is valid for the write.
    unsafe { clock_getres(clock, &raw mut step) };
    step.tv_sec as u64 * 1_000_000_000 + step.tv_nsec as u64
}

/// Sleeps by a clock: until a time of it, or for a time from now. False: a signal ended the sleep,
/// or nothing can sleep by this clock.
#[inline(always)]
pub(crate) fn sleep(clock: ClockNumber, is_absolute: bool, time: &Timespec) -> bool {
    let mut until = zero();
    (until.tv_sec, until.tv_nsec) = (time.tv_sec as _, time.tv_nsec as _);
    let flags = if is_absolute { libc::TIMER_ABSTIME } else { 0 };
    // SAFETY: `until` is a valid timespec; what is left of it is not asked for.
    let error = unsafe { clock_nanosleep(clock, flags, &raw const until, std::ptr::null_mut()) };
    error == 0
}

// set_mempolicy(2) and get_mempolicy(2): from which NUMA nodes the calling thread, and what it
// starts, takes memory.

/// Most nodes that are asked for: more than any kernel is built for (`MAX_NUMNODES`).
const NODES: usize = 1024;

const WORDS: usize = NODES / 64;

/// The kernel takes one more than it reads bits (mm/mempolicy.c, `get_nodes`).
const NODES_ARG: libc::c_ulong = NODES as libc::c_ulong + 1;

/// Of these nodes alone (include/uapi/linux/mempolicy.h).
const MPOL_BIND: libc::c_int = 2;

/// Takes memory from these nodes alone, from now on.
///
/// # Errors
/// EINVAL for nodes without memory or not allowed, ENOSYS where the kernel has no NUMA.
pub fn bind_memory(nodes: &[u32]) -> io::Result<()> {
    let mut mask = [0u64; WORDS];
    for &node in nodes {
        let word = mask.get_mut(node as usize / 64).ok_or(io::ErrorKind::InvalidInput)?;
        *word |= 1 << (node % 64);
    }
    // SAFETY: the kernel reads as many bits as `mask` has, which outlives the call.
    let result =
        unsafe { libc::syscall(libc::SYS_set_mempolicy, MPOL_BIND, mask.as_ptr(), NODES_ARG) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The nodes that the calling thread is bound to; `None`: it is not.
///
/// # Errors
/// ENOSYS where the kernel has no NUMA.
pub fn memory_is_bound_to() -> io::Result<Option<Vec<u32>>> {
    let (mut mode, mut mask) = (0 as libc::c_int, [0u64; WORDS]);
    // SAFETY: the kernel writes a number and as many bits as `mask` has; both outlive the call.
    let result = unsafe {
        let (address, flags) = (std::ptr::null::<u8>(), 0 as libc::c_ulong);
        libc::syscall(
            libc::SYS_get_mempolicy,
            &raw mut mode,
            mask.as_mut_ptr(),
            NODES_ARG,
            address,
            flags,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let has = |node: &u32| mask[*node as usize / 64] & (1 << (node % 64)) != 0;
    Ok((mode == MPOL_BIND).then(|| (0..NODES as u32).filter(has).collect()))
}

#[cfg(test)]
mod clock_tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn the_date_is_that_of_the_standard_library_and_one_after_2038_can_be_waited_for() {
        let date = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let before_ns = date();
        let now_ns = clock_ns(libc::CLOCK_REALTIME);
        assert!(before_ns <= now_ns && now_ns <= date());
        assert!(resolution_ns(libc::CLOCK_MONOTONIC) > 0);
        assert_eq!((clock_ns(99), resolution_ns(99)), (0, 0));
        let from_ns = clock_ns(libc::CLOCK_MONOTONIC);
        assert!(sleep(libc::CLOCK_MONOTONIC, true, &timespec(from_ns + 1_000_000)));
        assert!(clock_ns(libc::CLOCK_MONOTONIC) >= from_ns + 1_000_000);
        // 2^32 s: with 32 bits it is 1970, and the sleep would be over.
        let far = std::thread::spawn(|| {
            sleep(libc::CLOCK_REALTIME, true, &timespec(4_294_967_296_000_000_000))
        });
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!far.is_finished());
    }
}

#[cfg(test)]
mod numa_tests {
    use super::*;

    #[test]
    fn a_thread_is_bound_and_its_maker_is_not() {
        let thread = std::thread::spawn(|| {
            let set = bind_memory(&[0]);
            (set.is_ok(), memory_is_bound_to().ok().flatten())
        });
        // A kernel without NUMA, or a container that forbids it, refuses both.
        match thread.join().unwrap() {
            (true, bound) => assert_eq!(bound, Some(vec![0])),
            (false, bound) => assert_eq!(bound, None),
        }
        assert!(!matches!(memory_is_bound_to(), Ok(Some(_))));
    }

    #[test]
    fn a_node_that_is_not_there_is_refused() {
        for nodes in [&[1023][..], &[5000], &[]] {
            assert!(std::thread::spawn(|| bind_memory(nodes).is_err()).join().unwrap());
        }
    }
}
