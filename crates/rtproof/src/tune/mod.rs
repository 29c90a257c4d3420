//! The work behind `tune`: proving, exporting, one folder each.

pub mod config;
pub mod place;
