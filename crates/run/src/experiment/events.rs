//! What the caller shows while knobs are tried.

use std::io;

use crate::prove::Observer;

/// Shows what is tried.
pub trait Events {
    /// What will be tried, and how long it takes.
    fn setup(&mut self, sentence: &str) -> io::Result<()>;

    /// A line while it is tried.
    fn line(&mut self, line: &str) -> io::Result<()>;

    /// Observes the run that begins now.
    fn observer(&self, duration_ns: u64) -> Box<dyn Observer>;
}
