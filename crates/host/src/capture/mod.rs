//! A whole machine as one text file: what was read from it and what it answered.
//!
//! [`Capture::take`] reads a machine as the checks do and records every question with its
//! answer; a [`crate::Root`] of a capture gives the same answers anywhere. What was not read is
//! unknown and says so: it is not absent. The format is in docs/capture.md, why it is as it is in
//! docs/adr/0006-captures-are-one-text-file.md.

mod answer;
mod escape;
mod form;
mod parse;
mod record;
mod write;

pub use self::form::{CAPTURE_BYTES_MAX, Capture, CaptureError, Origin};
pub(crate) use self::{escape::escape, form::Entry, record::Recorder};

#[cfg(test)]
mod tests;
