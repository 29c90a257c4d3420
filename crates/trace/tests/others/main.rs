//! Kernel traces of others, and ours in the hands of other tools.

#![expect(clippy::disallowed_methods, reason = "tests run programs and read what they wrote")]

mod common;
mod perfetto;
mod text;
mod trace_cmd;
