//! Rows: kernel build and preemption.

use rtproof_host::knobs::kernel as knobs;

use crate::Impact;
use crate::checks::rule::{Absent, Rule, Want};

/// The table.
pub(super) const RULES: &[Rule] = &[
    Rule {
        knob: &knobs::TRACER,
        title: "tracer in force",
        why: "a tracer records every function, interrupt or preemption of each CPU while it is on",
        source: "Documentation/core-api/real-time/kernel-configuration.rst (CONFIG_TRACING); \
                 Documentation/trace/ftrace.rst",
        trade_off: None,
        impact: Impact::Tens,
        want: |_| Want::is("nop"),
        absent: Absent::WithoutOption("TRACING"),
        applies: None,
        good: "nop",
        bad: "function",
    },
    Rule {
        knob: &knobs::TRACE_EVENTS,
        title: "trace events",
        why: "each event that is on is written down where it happens, on the real-time CPUs, too",
        source: "Documentation/core-api/real-time/kernel-configuration.rst (CONFIG_TRACING); \
                 Documentation/trace/events.rst",
        trade_off: None,
        impact: Impact::Microseconds,
        want: |_| Want::is("0").or_doubtful(),
        absent: Absent::WithoutOption("TRACING"),
        applies: None,
        good: "0",
        bad: "X",
    },
];
