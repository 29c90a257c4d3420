//! Rows: scheduler, real-time tasks, rights.

use rtproof_host::knobs::sched as knobs;

use crate::Impact;
use crate::checks::rule::{Absent, Rule, Want};

/// The table.
pub(super) const RULES: &[Rule] = &[Rule {
    knob: &knobs::SCHED_EXT,
    title: "BPF scheduler for ordinary tasks (sched_ext)",
    why: "a BPF program decides when ordinary tasks run, and with it how long the application \
          waits for them: their locks, their answers",
    source: "Documentation/scheduler/sched-ext.rst; kernel/sched/ext.c",
    trade_off: Some(
        "a BPF scheduler may suit a desktop; real-time tasks run ahead of its tasks as they do \
         ahead of ordinary ones",
    ),
    impact: Impact::Information,
    want: |_| Want::is("disabled").or_doubtful().not_set(),
    absent: Absent::WithoutOption("SCHED_CLASS_EXT"),
    applies: None,
    good: "disabled",
    bad: "enabled",
}];
