//! What a case can switch on in its guest: causes of latency, each bounded in time, each writing
//! down what it really did (`truth.jsonl` in the shared folder).

use serde_json::Value;

/// One plant.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Plant {}

impl Plant {
    /// Shell lines that run in the guest before the case's script; they start the plant in the
    /// background.
    #[must_use]
    pub fn shell(&self) -> String {
        match *self {}
    }

    /// What is asked of the guest, for the books of the run.
    #[must_use]
    pub fn asked(&self) -> Value {
        match *self {}
    }

    /// Whether the kernel module must be there.
    #[must_use]
    pub fn needs_module(&self) -> bool {
        match *self {}
    }
}
