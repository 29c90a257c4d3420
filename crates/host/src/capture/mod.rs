//! Captures of machines: their form, reading and writing.

pub mod form;
mod parse;
mod write;
