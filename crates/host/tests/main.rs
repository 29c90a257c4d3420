//! Facts of captured machines and of this one.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests read the machine themselves, and name what they leave out"
)]

mod captures;
mod live;
mod tracefs;
