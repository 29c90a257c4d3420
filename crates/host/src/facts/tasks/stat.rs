//! /proc/PID/stat.

use super::Policy;

/// Flag of kernel threads (include/linux/sched.h, `PF_KTHREAD`).
pub(super) const PF_KTHREAD: u64 = 0x0020_0000;

/// Flag of tasks that the kernel refuses to move (`PF_NO_SETAFFINITY`).
const PF_NO_SETAFFINITY: u64 = 0x0400_0000;

/// The fields of /proc/PID/stat that are used here (Documentation/filesystems/proc.rst, table 1-4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) comm: String,
    pub(crate) kernel_thread: bool,
    pub(crate) bound: bool,
    pub(crate) threads: u64,
    pub(crate) start_ticks: u64,
    pub(crate) cpu: u32,
    pub(crate) priority: u32,
    pub(crate) policy: Option<Policy>,
    pub(crate) nice: i64,
    /// Time on CPUs, in user and kernel mode.
    pub(crate) cpu_ticks: u64,
    /// Page faults that needed no disk.
    pub(crate) minor_faults: u64,
    /// Page faults that waited for a disk.
    pub(crate) major_faults: u64,
}

impl Stat {
    /// Takes a line apart. The name may hold spaces and parentheses, so it ends at the last `)`;
    /// after it comes field 3.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (head, tail) = line.rsplit_once(')')?;
        let (_, comm) = head.split_once('(')?;
        let fields: Vec<&str> = tail.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let small = |number: usize| u32::try_from(field(number)?).ok();
        Some(Self {
            comm: comm.to_owned(),
            kernel_thread: field(9)? & PF_KTHREAD != 0,
            bound: field(9)? & PF_NO_SETAFFINITY != 0,
            threads: field(20)?,
            start_ticks: field(22)?,
            cpu: small(39)?,
            priority: small(40)?,
            policy: Policy::from_number(small(41)?),
            nice: fields.get(19 - 3)?.parse().ok()?,
            cpu_ticks: field(14)?.saturating_add(field(15)?),
            minor_faults: field(10)?,
            major_faults: field(12)?,
        })
    }
}
