//! A subsystem and its checks.

use crate::Check;

/// The checks of one subsystem.
pub struct Section {
    /// Name of its folder.
    pub name: &'static str,
    pub title: &'static str,
    /// Its checks, in the order of the report.
    pub checks: &'static [&'static Check],
}
