//! The user while a bisection works: sees the progress, and may end it.

use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

use crate::kernel::tool::{OnProgress, Progress};

/// Who sees the progress, and may stop the work.
pub(super) struct Watch<'a> {
    observer: RefCell<OnProgress<'a>>,
    stopped: Cell<bool>,
    label: RefCell<String>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(observer: OnProgress<'a>) -> Self {
        Self {
            observer: RefCell::new(observer),
            stopped: Cell::new(false),
            label: RefCell::default(),
        }
    }

    /// What is shown before each step's own name.
    pub(super) fn label(&self, label: String) {
        *self.label.borrow_mut() = label;
    }

    pub(super) fn observe(&self, of: &Progress) -> std::ops::ControlFlow<()> {
        let step = format!("{}: {}", self.label.borrow(), of.step);
        let go_on = (self.observer.borrow_mut())(&Progress { step, ..of.clone() });
        self.stopped.set(self.stopped.get() || go_on.is_break());
        go_on
    }

    /// Whether the user ended it.
    pub(super) fn is_stopped(&self, step: &str, elapsed: Duration) -> bool {
        let _ = self.observe(&Progress { step: step.into(), objects: 0, elapsed });
        self.stopped.get()
    }
}
