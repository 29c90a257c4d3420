//! What checks answer when paths cannot be read.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests read and write their own files, and say what they did"
)]

mod corpus;
mod denied;
mod field;
mod kernels;
