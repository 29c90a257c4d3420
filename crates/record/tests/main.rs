//! Records: what is written is what is read, damaged or whole, from rtproof or from other tools.

#![allow(clippy::disallowed_methods, reason = "tests read and write their own files")]

mod common;
mod damage;
mod export;
mod follow;
mod imports;
mod round_trip;
