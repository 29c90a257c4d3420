//! The parent's ends of a worker's pipes, read without ever waiting and with bounded memory.

use std::collections::VecDeque;
use std::io::Read;
use std::os::fd::AsFd;
use std::process::{ChildStderr, ChildStdout};

/// Longest line that is kept.
const LINE_BYTES_MAX: usize = 64 << 10;
/// What is kept of stderr.
const TAIL_BYTES_MAX: usize = 2 << 10;
/// Reads of one call, so that a worker that writes without end does not hold the caller.
const READS_MAX: usize = 64;

/// Whole lines of a worker's stdout.
pub(super) struct Lines {
    pipe: ChildStdout,
    partial: Vec<u8>,
}

impl Lines {
    pub(super) fn new(pipe: ChildStdout) -> std::io::Result<Self> {
        no_wait(&pipe)?;
        Ok(Self { pipe, partial: Vec::new() })
    }

    /// The lines that have come in since the last call, without their ends.
    pub(super) fn read(&mut self) -> Vec<String> {
        let partial = &mut self.partial;
        drain(&mut self.pipe, |bytes| {
            partial.extend_from_slice(bytes);
        });
        take_lines(partial)
    }
}

fn take_lines(partial: &mut Vec<u8>) -> Vec<String> {
    let end = partial.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
    let whole: Vec<u8> = partial.drain(..end).collect();
    if partial.len() > LINE_BYTES_MAX {
        partial.clear();
    }
    String::from_utf8_lossy(&whole).lines().map(Into::into).collect()
}

/// The end of a worker's stderr.
pub(super) struct Tail {
    pipe: ChildStderr,
    kept: VecDeque<u8>,
}

impl Tail {
    pub(super) fn new(pipe: ChildStderr) -> std::io::Result<Self> {
        no_wait(&pipe)?;
        Ok(Self { pipe, kept: VecDeque::new() })
    }

    pub(super) fn read(&mut self) {
        let kept = &mut self.kept;
        drain(&mut self.pipe, |bytes| {
            kept.extend(bytes);
            kept.drain(..kept.len().saturating_sub(TAIL_BYTES_MAX));
        });
    }

    /// The text, or that there is none.
    pub(super) fn text(&mut self) -> String {
        self.read();
        match String::from_utf8_lossy(self.kept.make_contiguous()).trim() {
            "" => "nothing".into(),
            text => text.into(),
        }
    }
}

/// The flag belongs to the open file: only this end of the pipe has it.
fn no_wait(pipe: impl AsFd) -> std::io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(pipe, true)?)
}

fn drain(pipe: &mut impl Read, mut take: impl FnMut(&[u8])) {
    let mut buffer = [0; 4096];
    for _ in 0..READS_MAX {
        match pipe.read(&mut buffer) {
            Ok(count @ 1..) => take(&buffer[..count]),
            // The end, nothing there yet, or an error that waitpid will explain.
            Ok(0) | Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_and_bounded() {
        let mut partial = b"work\t1\nwork\t2\nwo".to_vec();
        assert_eq!(take_lines(&mut partial), ["work\t1", "work\t2"]);
        assert_eq!(partial, b"wo");
        partial.extend_from_slice(b"rk\t3\n");
        assert_eq!(take_lines(&mut partial), ["work\t3"]);
        let mut endless = vec![b'x'; LINE_BYTES_MAX + 1];
        assert!(take_lines(&mut endless).is_empty());
        assert!(endless.is_empty());
    }
}
