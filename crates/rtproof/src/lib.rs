//! rtproof: takes a Linux machine from unknown to proven real-time.
//!
//! Arguments and wiring: parse, run, report, print. The library part exists so that the reference
//! pages and the tests see the same definitions as the program.

mod answers;
mod ask;
pub mod cli;
pub mod commands;
pub mod exit;
mod intent;
pub mod manners;
mod moving;
mod next;
mod pages;
pub mod print;
mod root;
pub mod schemas;
mod show;
pub mod stderr;
