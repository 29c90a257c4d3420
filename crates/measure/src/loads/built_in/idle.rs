//! The absence of a load, by name: the first phase of a run shows what the machine does when left
//! alone, and `idle` says so in the record where an empty list would leave it open.

use super::super::load::Load;

/// Its name, which the runner and the specification look for.
pub(in super::super) const NAME: &str = "idle";

/// Nothing. The runner starts no process for it.
pub(super) const LOAD: Load = Load {
    name: NAME,
    about: "No load: no process is started (also written `none`)",
    unit: "operations",
    parameter: None,
    prepare: None,
    work: |_| Ok(()),
};
