//! What the good machine of the tests has, as far as the rows of this section do not say it.

use rtproof_host::Facts;

/// Fills it in.
pub(super) const fn fill(_: &mut Facts) {}
