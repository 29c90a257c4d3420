//! The absence of a load, by name: the first phase of a run shows what the machine does when left
//! alone, and `idle` says so in the record where an empty list would leave it open.

use super::{Context, Load};

/// Nothing. The runner starts no process for it.
pub(super) struct Idle;

/// Its name, which the runner and the specification look for.
pub(super) const NAME: &str = "idle";

impl Load for Idle {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "No load: no process is started (also written `none`)"
    }

    fn unit(&self) -> &'static str {
        "operations"
    }

    fn work(&self, _: &Context) -> Result<(), String> {
        Ok(())
    }
}
