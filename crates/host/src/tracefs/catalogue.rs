//! The kernel's tracers that rtproof drives: what builds each into a kernel, what it keeps, and
//! which of them cannot run beside it.

/// What a tracer keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// The longest latency alone, in a buffer of its own (kernel/trace/trace_sched_wakeup.c,
    /// trace_irqsoff.c).
    Longest,
    /// The last calls, as many as the ring holds: nobody reads them as fast as they come.
    Last,
    /// Lines that can be read as they come.
    Lines,
}

/// A tracer of the kernel that rtproof can run.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Name, as in `available_tracers`.
    pub name: &'static str,
    /// Build options that it needs.
    pub options: &'static str,
    pub keeps: Keeps,
    /// What it has in common with others of its kind: one of them runs at a time.
    family: &'static str,
    /// Whether it goes by `tracing_thresh`, which the whole machine shares.
    has_threshold: bool,
}

const fn known(
    name: &'static str,
    options: &'static str,
    keeps: Keeps,
    family: &'static str,
    has_threshold: bool,
) -> Known {
    Known { name, options, keeps, family, has_threshold }
}

const SCHED: &str = "CONFIG_SCHED_TRACER";
const BOTH: &str = "CONFIG_IRQSOFF_TRACER and CONFIG_PREEMPT_TRACER";

pub const KNOWN: &[Known] = &[
    known("wakeup", SCHED, Keeps::Longest, "wakeup", true),
    known("wakeup_rt", SCHED, Keeps::Longest, "wakeup", true),
    known("wakeup_dl", SCHED, Keeps::Longest, "wakeup", true),
    known("irqsoff", "CONFIG_IRQSOFF_TRACER", Keeps::Longest, "off", true),
    known("preemptoff", "CONFIG_PREEMPT_TRACER", Keeps::Longest, "off", true),
    known("preemptirqsoff", BOTH, Keeps::Longest, "off", true),
    known("function", "CONFIG_FUNCTION_TRACER", Keeps::Last, "", false),
    known("function_graph", "CONFIG_FUNCTION_GRAPH_TRACER", Keeps::Last, "", true),
    known("hwlat", "CONFIG_HWLAT_TRACER", Keeps::Lines, "hwlat", true),
    known("osnoise", "CONFIG_OSNOISE_TRACER", Keeps::Lines, "osnoise", true),
    known("timerlat", "CONFIG_TIMERLAT_TRACER", Keeps::Lines, "osnoise", false),
    known("nop", "CONFIG_TRACING", Keeps::Lines, "", false),
];

/// The tracer of a name.
pub fn find(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

/// The build options of a tracer.
pub(super) fn options(name: &str) -> &'static str {
    find(name).map_or("CONFIG_TRACING", |known| known.options)
}

/// Whether two tracers share threads or a state of which the kernel has one.
pub(super) fn exclude_each_other(one: &str, other: &str) -> bool {
    let family = |name| find(name).map(|known| known.family).filter(|family| !family.is_empty());
    family(one).is_some() && family(one) == family(other)
}

/// Whether a tracer goes by `tracing_thresh`.
pub(super) fn has_threshold(name: &str) -> bool {
    find(name).is_some_and(|known| known.has_threshold)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_kind_runs_at_a_time() {
        assert!(exclude_each_other("wakeup_rt", "wakeup_dl"));
        assert!(exclude_each_other("timerlat", "osnoise"));
        assert!(exclude_each_other("hwlat", "hwlat"));
        for (one, other) in [("nop", "nop"), ("function", "function"), ("nop", "timerlat")] {
            assert!(!exclude_each_other(one, other), "{one} {other}");
        }
        assert!(!exclude_each_other("wakeup_rt", "irqsoff"));
        assert!(!exclude_each_other("blk", "blk"), "not one of ours");
    }
}
