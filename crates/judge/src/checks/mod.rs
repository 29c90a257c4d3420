//! The checks: one file each, one list.
//!
//! A check is a pure function from facts and intent to a [`Finding`]. To add one: copy
//! `_template.rs`, fill it in, add one line to [`CHECKS`], run the tests.

use rtproof_host::Facts;

use crate::{Finding, Intent};

/// One check.
pub trait Check: Sync {
    /// Identifier: short, kebab-case, for ever.
    fn id(&self) -> &'static str;
    /// What it looks at, in one line.
    fn title(&self) -> &'static str;
    /// Why a bad answer adds latency.
    fn why(&self) -> &'static str;
    /// Where that is known from: documents, kernel files, measurements.
    fn source(&self) -> &'static str;
    /// The answer. Never `Good` when what it needs is unknown.
    fn judge(&self, facts: &Facts, intent: &Intent) -> Finding;
}

/// Every check, in the order of the report.
pub const CHECKS: &[&dyn Check] = &[];

/// Runs every check.
#[must_use]
pub fn judge_all(facts: &Facts, intent: &Intent) -> Vec<Finding> {
    CHECKS.iter().map(|check| check.judge(facts, intent)).collect()
}
