//! Rows: scheduler, real-time tasks, rights.

use rtproof_host::knobs::sched as knobs;

use crate::Impact;
use crate::check::{Check, Judge};
use crate::value::{Absent, Want};

pub(super) static SCHED_EXT: Check = Check {
    title: "BPF scheduler for ordinary tasks (sched_ext)",
    why: "a BPF program decides when ordinary tasks run, and with it how long the application \
          waits for them: their locks, their answers",
    source: "Documentation/scheduler/sched-ext.rst; kernel/sched/ext.c",
    trade_off: Some(
        "a BPF scheduler may suit a desktop; real-time tasks run ahead of its tasks as they do \
         ahead of ordinary ones",
    ),
    impact: Impact::Information,
    judge: Judge::value(
        |_| Want::is("disabled").or_doubtful().not_set(),
        Absent::WithoutOption("SCHED_CLASS_EXT"),
    ),
    ..Check::of(&[&knobs::SCHED_EXT])
};
