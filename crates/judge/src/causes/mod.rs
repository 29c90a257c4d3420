//! Causes: why a wake-up was late, one file each, in one list.
//!
//! Pure: the same wake-up and window give the same explanation.

mod explanation;
mod of_run;
mod spikes;
pub mod table;

use rtproof_trace::{WakeUp, Window};

pub use explanation::{Explanation, Share, Span};
pub use spikes::{CauseCpu, CauseRow, Recorder, Spike, Spikes, Structure};
pub use table::Table;

/// A cause in words.
#[must_use]
pub fn title(id: &str) -> &str {
    id
}

/// Why a wake-up was late.
#[must_use]
pub fn explain(wake: &WakeUp, window: &Window) -> Explanation {
    let share = Share {
        cause: "unexplained".into(),
        culprit: String::new(),
        ns: wake.latency_ns(),
        or: Vec::new(),
        detail: Vec::new(),
        owner: None,
        checks: Vec::new(),
        remedies: Vec::new(),
    };
    let task = window.tasks.get(&wake.tid).map_or_else(|| wake.tid.to_string(), |t| t.comm.clone());
    Explanation {
        wake: *wake,
        task,
        irq_ns: None,
        woken_ns: None,
        switched_ns: None,
        spans: vec![Span { from_ns: wake.due_ns, to_ns: wake.ran_ns, share: 0 }],
        shares: vec![share],
        incomplete: Vec::new(),
        wakers: Vec::new(),
    }
}
