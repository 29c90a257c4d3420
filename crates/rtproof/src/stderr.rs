//! Where errors, warnings and questions go. They name files, records and machines of others: their
//! words must not command the terminal.

use std::io::{self, Write};

use rtproof_host::harmless;

pub fn line(words: &str) -> io::Result<()> {
    write(&format!("{words}\n"))
}

/// Writes words as they are, e.g. a question.
pub fn write(words: &str) -> io::Result<()> {
    rewrite("", words)
}

/// Writes words after a sequence of our own, which clears the line.
pub(crate) fn rewrite(before: &'static str, words: &str) -> io::Result<()> {
    let mut stderr = anstream::stderr().lock();
    stderr.write_all(format!("{before}{}", harmless::text(words)).as_bytes())?;
    stderr.flush()
}
