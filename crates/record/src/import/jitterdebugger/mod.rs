//! jitterdebugger: `results.json`, `samples.raw`, and the text of its jittersamples.

pub(super) mod csv;
pub(super) mod json;
pub(super) mod raw;
