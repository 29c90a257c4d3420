//! Rows: memory and file systems.

use rtproof_host::knobs::memory as knobs;

use crate::Impact;
use crate::checks::rule::{Absent, Rule, Want};

/// The table.
pub(super) const RULES: &[Rule] = &[Rule {
    knob: &knobs::SWAPPINESS,
    title: "how readily pages are swapped out (vm.swappiness)",
    why: "a page of the application that was swapped out takes milliseconds to come back",
    source: "Documentation/admin-guide/sysctl/vm.rst; tuned, profile latency-performance (10); rtcqs",
    trade_off: None,
    impact: Impact::Milliseconds,
    want: |_| Want::at_most(10).or_doubtful(),
    absent: Absent::WithoutOption("SWAP"),
    applies: None,
    good: "10",
    bad: "60",
}];
