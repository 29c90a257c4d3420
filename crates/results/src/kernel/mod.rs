//! What the commands of `rtproof kernel` return.

pub mod bisect;
pub mod boot;
pub mod build;
pub mod compare;
pub mod config;
pub mod find;
pub mod rebase;
