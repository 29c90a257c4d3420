//! Limits as they apply to this process: what mlock and SCHED_FIFO will be allowed to do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Reading, Root, text::field};

/// Limits of this process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// RLIMIT_RTPRIO: highest real-time priority without CAP_SYS_NICE.
    pub rtprio: Reading<Limit>,
    /// RLIMIT_MEMLOCK in bytes: how much may be locked without CAP_IPC_LOCK.
    pub memlock: Reading<Limit>,
    /// CAP_SYS_NICE in the effective set (CapEff of /proc/self/status).
    pub cap_sys_nice: Reading<bool>,
    /// CAP_IPC_LOCK in the effective set.
    pub cap_ipc_lock: Reading<bool>,
    /// RLIMIT_RTTIME in microseconds: a real-time task that runs longer without blocking is killed.
    pub rttime: Reading<Limit>,
}

/// Soft and hard limit; `None` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    pub soft: Option<u64>,
    pub hard: Option<u64>,
}

/// Bits of the capability sets (include/uapi/linux/capability.h).
pub(super) const CAP_IPC_LOCK: u32 = 14;
pub(super) const CAP_SYS_NICE: u32 = 23;

impl Limits {
    /// Reads the limits of this process from /proc/self: not by getrlimit(2), so that a captured
    /// machine does not show ours.
    pub fn read(root: &Root) -> Self {
        let limits = root.read_text("/proc/self/limits");
        let effective = root.read_text("/proc/self/status").and_then(|path, text| {
            let set = field(&text, "CapEff").unwrap_or_default();
            let known = effective_capabilities(&text).map(|set| Reading::known(&path, set));
            known.unwrap_or_else(|| Reading::malformed(&path, set, "CapEff: and a mask"))
        });
        let has = |bit: u32| effective.clone().map(|set| set & (1 << bit) != 0);
        Self {
            rtprio: limit(&limits, "Max realtime priority"),
            memlock: limit(&limits, "Max locked memory"),
            cap_sys_nice: has(CAP_SYS_NICE),
            cap_ipc_lock: has(CAP_IPC_LOCK),
            rttime: limit(&limits, "Max realtime timeout"),
        }
    }
}

/// A line of /proc/PID/limits: name, soft limit, hard limit, unit where there is one.
pub(super) fn limit(limits: &Reading<String>, name: &str) -> Reading<Limit> {
    limits.clone().and_then(|path, text| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        let number = |word: Option<&str>| match word? {
            "unlimited" => Some(None),
            digits => digits.parse().ok().map(Some),
        };
        let mut words = line[name.len().min(line.len())..].split_whitespace();
        match (number(words.next()), number(words.next())) {
            (Some(soft), Some(hard)) => Reading::known(path, Limit { soft, hard }),
            _ => Reading::malformed(path, line, format!("{name}, soft limit, hard limit")),
        }
    })
}

pub(super) fn effective_capabilities(status: &str) -> Option<u64> {
    u64::from_str_radix(field(status, "CapEff")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn soft_hard_unlimited_and_capabilities() {
        let tree = Tree::new(&[
            (
                "proc/self/limits",
                "Limit                     Soft Limit           Hard Limit           Units     \n\
                 Max locked memory         8388608              unlimited            bytes     \n\
                 Max realtime priority     0                    99                   \n\
                 Max realtime timeout      many                 unlimited            us        \n",
            ),
            ("proc/self/status", "Name:\tx\nCapEff:\t0000000000804000\n"),
        ]);
        let limits = Limits::read(&tree.root());
        assert_eq!(limits.rtprio.value(), Some(&Limit { soft: Some(0), hard: Some(99) }));
        assert_eq!(limits.memlock.value(), Some(&Limit { soft: Some(8_388_608), hard: None }));
        assert!(limits.rttime.why_unknown().unwrap().contains("many"));
        assert_eq!(limits.cap_sys_nice.value(), Some(&true));
        assert_eq!(limits.cap_ipc_lock.value(), Some(&true));
    }

    #[test]
    fn a_captured_machine_does_not_show_our_limits() {
        let limits = Limits::read(&Tree::new(&[("proc/version", "")]).root());
        assert!(limits.rtprio.is_absent() && limits.cap_sys_nice.is_absent());
        let plain = Limits::read(&Tree::new(&[("proc/self/status", "CapEff:\t0\n")]).root());
        assert_eq!(plain.cap_sys_nice.value(), Some(&false));
        let none = Limits::read(&Tree::new(&[("proc/self/status", "Name:\tx\n")]).root());
        assert!(none.cap_ipc_lock.why_unknown().unwrap().contains("CapEff"));
    }
}
