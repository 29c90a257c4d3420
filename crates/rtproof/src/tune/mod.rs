//! The work behind `tune`: proving, exporting, repeating at boot, one folder each.

pub mod config;
pub mod hold;
pub mod notify;
pub mod place;
pub mod prove;
