//! rtproof: takes a Linux machine from unknown to proven real-time.
//!
//! Floor 4: commands, rendering. The library part exists so that the reference pages and the tests
//! see the same definitions as the program.

pub mod cli;
pub mod commands;
pub mod compare;
pub mod exit;
pub mod experiment;
mod explain;
pub mod measure;
pub mod parse;
pub mod prove;
pub mod render;
#[cfg(feature = "schema")]
pub mod schemas;
pub mod tune;
pub mod wishes;
