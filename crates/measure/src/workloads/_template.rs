//! Template of a workload. Copy to a file of its own name, say here what it measures and for whom,
//! and add `mod`, `pub use` and one line in `WORKLOADS`.

use std::sync::{Arc, atomic::AtomicBool};

use super::{Armed, OwnCost, Quantity, Setting, Workload, WorkloadError, no_parameter};
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

    fn quantity(&self) -> Quantity {
        Quantity::Latency
    }

    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError> {
        no_parameter(&Self, parameter, Self)
    }

    fn arm(&self, _: &Setting) -> Result<Box<dyn Armed>, WorkloadError> {
        Ok(Box::new(Ready))
    }
}

/// What one thread needs of its own: buffers, timers, a calibrated amount of work.
struct Ready;

impl Armed for Ready {
    fn cost(&self) -> OwnCost {
        OwnCost { ns: 0, sentence: "What was calibrated.".into() }
    }

    fn run(&mut self, cycle: &mut Cycle, stop: &AtomicBool) -> EndReason {
        run(cycle, stop)
    }

    fn code(&self) -> Vec<usize> {
        vec![run as fn(&mut Cycle, &AtomicBool) -> EndReason as usize]
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
fn the_template_is_not_in_the_list() {
    assert!(super::WORKLOADS.iter().all(|workload| workload.name() != Template.name()));
    let setting = Setting {
        cpu: 0,
        policy: crate::thread::Policy::Other,
        priority: 0,
        period_ns: 1_000_000,
        duration_ns: 1_000_000,
    };
    assert!(!Template.arm(&setting).expect("nothing to refuse").code().is_empty());
}
