//! Which kernel it is.

use rtproof_host::Facts;

/// Whether the kernel is of this version or later.
pub(crate) fn since(facts: &Facts, version: (u32, u32)) -> Option<bool> {
    facts.kernel.version.value().map(|&found| found >= version)
}
