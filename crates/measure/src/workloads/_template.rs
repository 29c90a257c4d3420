//! Template of a workload. Copy to a file of its own name, say here what it measures and for whom,
//! and add `mod`, `pub use` and one line in `WORKLOADS`.

use std::sync::atomic::AtomicBool;

use super::Workload;
use crate::{cycle::Cycle, sys, thread::EndReason};

/// What it does each cycle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Template;

impl Workload for Template {
    fn name(&self) -> &'static str {
        "template"
    }

    fn about(&self) -> &'static str {
        "What it measures. What it does not."
    }

    fn run(&self, cycle: &mut Cycle, stop: &AtomicBool) -> EndReason {
        run(cycle, stop)
    }

    fn code(&self) -> usize {
        run as fn(&mut Cycle, &AtomicBool) -> EndReason as usize
    }
}

/// One function, so that its code can be locked: wait until `due_ns`, return the time.
#[inline(never)]
fn run(cycle: &mut Cycle, stop: &AtomicBool) -> EndReason {
    cycle.run(stop, |due_ns| {
        while sys::now_ns() < due_ns {
            std::hint::spin_loop();
        }
        sys::now_ns()
    })
}

#[test]
fn names_are_unique_and_described() {
    let all: Vec<_> = super::WORKLOADS.iter().map(|w| w.name()).collect();
    let unique: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(unique.len(), all.len());
    assert!(!all.contains(&Template.name()));
    assert!(super::WORKLOADS.iter().all(|w| !w.about().is_empty() && w.code() != 0));
}
