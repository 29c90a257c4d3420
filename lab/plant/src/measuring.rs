//! Finds out that `rtproof prove` is measuring, from /proc alone.
//!
//! Under icount with sleep=off the guest's clock jumps over idle time, so "two seconds after the
//! start" says nothing: plants have to wait for the run itself.

use std::{collections::BTreeMap, fs};

use crate::clock::{MS_NS, now_ns};
use crate::{clock, files};

/// Time between two looks.
const LOOK_NS: u64 = 20 * MS_NS;
/// Sleeps of a measuring thread before it is ready: crates/measure/src/thread.rs, WARM_UP.
const WARM_UP: u64 = 20;
/// After all threads are ready the first wake-up is 20 ms off (session.rs, LEAD_NS). Longer than
/// the slices of 100 ms in which prove first measures what its recorder costs, with threads of the
/// same names (prove/spikes/recording.rs).
const LEAD_NS: u64 = 200 * MS_NS;

/// Waits for the measuring threads (`rtproof/0`, `rtproof/1`, ...); the time at which they are
/// surely measuring, or `None` after `limit_ns`.
pub(crate) fn wait(limit_ns: u64) -> Option<u64> {
    let give_up_ns = now_ns() + limit_ns;
    let mut ready: Option<(Vec<u32>, u64)> = None;
    while now_ns() < give_up_ns {
        let seen = threads();
        let warm = !seen.is_empty() && seen.values().all(|&sleeps| sleeps >= WARM_UP);
        let tids: Vec<u32> = seen.into_keys().collect();
        let now_ns = now_ns();
        match &ready {
            Some((known, since_ns)) if warm && *known == tids => {
                if now_ns >= since_ns + LEAD_NS {
                    return Some(now_ns);
                }
            }
            _ => ready = warm.then_some((tids, now_ns)),
        }
        clock::sleep(LOOK_NS);
    }
    None
}

/// The process whose threads are measuring.
pub(crate) fn process() -> Option<u32> {
    let has_slept = |pid: &u32| threads_of(*pid).values().any(|&sleeps| sleeps >= WARM_UP);
    processes().find(has_slept)
}

fn processes() -> impl Iterator<Item = u32> {
    numbers("/proc").into_iter().filter(|pid| {
        files::read(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim_end() == "rtproof")
    })
}

/// Measuring threads and how often each has slept.
fn threads() -> BTreeMap<u32, u64> {
    processes().flat_map(threads_of).collect()
}

fn threads_of(pid: u32) -> BTreeMap<u32, u64> {
    let tids = numbers(&format!("/proc/{pid}/task")).into_iter();
    tids.filter_map(|tid| {
        let status = files::read(format!("/proc/{pid}/task/{tid}/status")).ok()?;
        Some((tid, sleeps(&status)?))
    })
    .collect()
}

/// How often a measuring thread has slept; `None` of any other thread.
fn sleeps(status: &str) -> Option<u64> {
    let name = status.lines().find_map(|line| line.strip_prefix("Name:"))?.trim();
    let cpu = name.strip_prefix("rtproof/")?;
    let is_number = !cpu.is_empty() && cpu.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number {
        return None;
    }
    files::number(status, "voluntary_ctxt_switches")
}

/// Entries of a folder that are numbers.
fn numbers(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_measuring_threads_count() {
        let status = |name: &str| format!("Name:\t{name}\nvoluntary_ctxt_switches:\t33\n");
        assert_eq!(sleeps(&status("rtproof/0")), Some(33));
        assert_eq!(sleeps(&status("rtproof/12")), Some(33));
        for name in ["rtproof", "rtproof/progress", "rtproof/", "rtproof-output", "sh"] {
            assert_eq!(sleeps(&status(name)), None, "{name}");
        }
    }

    #[test]
    fn a_wait_has_a_limit() {
        assert_eq!(wait(1), None);
    }
}
