//! What a trial is.

use rtproof_host::{CpuList, Facts, Root};
use rtproof_model::trial::Observation;

use crate::{loads::Settings, sys};

/// An experiment that observes what settings do not show (`check --prove`).
pub trait Trial: Sync + std::fmt::Debug {
    /// Name on the command line: lower case, one word.
    fn name(&self) -> &'static str;
    /// What it tries, as a phrase for `--help`.
    fn about(&self) -> &'static str;
    /// How long it takes.
    fn length(&self) -> Length {
        Length::AtOnce
    }
    /// Tries it. Called in a thread of its own, an ordinary one that stays off the CPUs of
    /// [`Trial::measured`] where there are others. Looks at [`Context::is_stopped`] at least every
    /// 100 ms where it waits.
    fn observe(&self, ctx: &Context<'_>) -> Observation;
    /// The CPUs that nothing else of ours may run on meanwhile.
    fn measured(&self, _: &Context<'_>) -> CpuList {
        CpuList::default()
    }
}

/// How long a trial takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// No time that one would notice.
    AtOnce,
    /// A time that can be chosen.
    Time {
        /// Unless another is requested, nanoseconds.
        default_ns: u64,
        longest_ns: u64,
    },
}

impl Length {
    /// Nanoseconds, where `wanted_ns` or nothing is requested.
    pub fn of(self, wanted_ns: Option<u64>) -> u64 {
        match self {
            Self::AtOnce => 0,
            Self::Time { default_ns, longest_ns } => {
                wanted_ns.unwrap_or(default_ns).min(longest_ns)
            }
        }
    }
}

/// What a trial is given.
pub struct Context<'a> {
    pub root: &'a Root,
    /// What is known of it.
    pub facts: &'a Facts,
    /// Real-time CPUs, online ones.
    pub rt_cpus: &'a CpuList,
    /// The other online CPUs that this process may use.
    pub housekeeping: &'a CpuList,
    /// SCHED_FIFO priority of the application.
    pub priority: u32,
    /// How long to try, nanoseconds; 0 where it is over at once.
    pub duration_ns: u64,
    /// Memory to lock, bytes.
    pub memory_bytes: u64,
    /// How loads are started; the trial sets their CPUs.
    pub loads: &'a Settings,
    /// Whether the user wants it to end.
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Called with the time that has gone by, nanoseconds, some times a second.
    pub progress: &'a (dyn Fn(u64) + Sync),
}

impl Context<'_> {
    /// Whether the trial shall end.
    pub fn is_stopped(&self) -> bool {
        (self.stop)()
    }

    /// Waits until `duration_ns` after `start_ns`, or until the trial shall end or `each`, which is
    /// called about every 50 ms, says that it has; returns how long that was.
    pub(super) fn wait(
        &self,
        start_ns: u64,
        duration_ns: u64,
        mut each: impl FnMut(u64) -> bool,
    ) -> u64 {
        loop {
            let elapsed_ns = sys::now_ns() - start_ns;
            (self.progress)(elapsed_ns.min(duration_ns));
            let has_ended = each(elapsed_ns);
            if has_ended || elapsed_ns >= duration_ns || self.is_stopped() {
                return elapsed_ns;
            }
            let left_ns = duration_ns - elapsed_ns;
            std::thread::sleep(std::time::Duration::from_nanos(left_ns.min(50_000_000)));
        }
    }
}
