//! The work behind `tune`: proving, exporting, one folder each.

pub mod prove;
