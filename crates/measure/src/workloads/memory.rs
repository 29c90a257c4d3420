//! Memory operations: reads and writes all over a buffer, whose size decides which cache, or the
//! memory itself, is measured.

use std::sync::Arc;

use super::{
    error::WorkloadError,
    work::{self, Operation, step},
    workload::{Armed, Clocks, Description, Setting, Workload},
};
use crate::quantity::Quantity;

/// Words of a cache line.
const LINE: usize = 8;
/// Smallest and largest buffer, bytes.
const BYTES: std::ops::RangeInclusive<u64> = 4096..=1 << 30;
const UNITS: &[(&str, u64)] = &[
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("k", 1 << 10),
    ("M", 1 << 20),
    ("", 1),
];

/// Reads and writes of a buffer of some bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    bytes: u64,
}

/// What fits into the second-level cache of most machines, not into the first.
pub(super) const WORKLOAD: Memory = Memory { bytes: 64 << 10 };

const DESCRIPTION: Description = Description {
    parameter: Some("the size of the buffer, 4KiB to 1GiB, as in memory:4MiB; 64KiB without"),
    clocks: Clocks::Read,
    ..Description::new(
        "memory",
        "Duration of a fixed number of reads and writes of single cache lines all over a buffer \
         of a given size. Each place depends on what the last one read. Shows what takes the CPU away, \
         and what throws lines out of the caches or keeps the memory busy: \
         other CPUs, devices, neighbours of a guest. Not bandwidth, and not how late the work \
         began.",
        Quantity::Duration,
    )
};

impl Workload for Memory {
    fn describe(&self) -> &Description {
        &DESCRIPTION
    }

    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError> {
        let Some(text) = parameter else { return Ok(Arc::new(WORKLOAD)) };
        let bytes = bytes(text).filter(|bytes| BYTES.contains(bytes));
        let bytes = bytes.ok_or_else(|| {
            WorkloadError::parameter(self.name(), text, "a size from 4KiB to 1GiB, as 64KiB")
        })?;
        Ok(Arc::new(Self { bytes }))
    }

    fn spec(&self) -> String {
        let unit = UNITS[..3].iter().rev().find(|(_, unit)| self.bytes.is_multiple_of(*unit));
        let (word, unit) = unit.copied().unwrap_or(("", 1));
        format!("{}:{}{word}", self.name(), self.bytes / unit)
    }

    fn arm(&self, setting: &Setting) -> Result<Box<dyn Armed>, WorkloadError> {
        let lines = self.bytes as usize / (LINE * size_of::<u64>());
        let mut words = Vec::new();
        words.try_reserve_exact(lines * LINE).map_err(|_| {
            let why = format!("no {} bytes of memory; take a smaller buffer", self.bytes);
            WorkloadError::unfit(self.name(), why)
        })?;
        words.resize(lines * LINE, 1);
        Ok(work::calibrate(Buffer { words, lines: lines as u64, x: 1 }, setting))
    }
}

/// Bytes of a text with a binary unit.
fn bytes(text: &str) -> Option<u64> {
    let (word, unit) = UNITS.iter().find(|(word, _)| text.ends_with(word))?;
    let number = text.strip_suffix(word)?.trim();
    number.parse::<u64>().ok()?.checked_mul(*unit)
}

struct Buffer {
    words: Vec<u64>,
    lines: u64,
    x: u64,
}

impl Operation for Buffer {
    const WORDS: &'static str = "a read and a write of a cache line";

    #[inline(never)]
    fn run(&mut self, ops: u64) {
        let mut x = self.x;
        for _ in 0..ops {
            // The high half of a product of the high half: a line, all of them equally often.
            let line = ((x >> 32) * self.lines) >> 32;
            let word = &mut self.words[line as usize * LINE];
            *word = word.wrapping_add(2);
            // All words are odd: 1, but the CPU has to read it to know.
            x = step(x ^ 1) ^ (*word & 1);
        }
        self.x = x;
    }

    fn memory(&self) -> Vec<(usize, usize)> {
        vec![(self.words.as_ptr() as usize, size_of_val(self.words.as_slice()))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        let spec = |text| WORKLOAD.with(Some(text)).map(|memory| memory.spec());
        assert_eq!(spec("4MiB").expect("a size"), "memory:4MiB");
        assert_eq!(spec("1536k").expect("a size"), "memory:1536KiB");
        assert_eq!(spec("5000").expect("a size"), "memory:5000");
        assert_eq!(spec("65536").expect("a size"), "memory:64KiB");
        for text in ["", "4095", "2GiB", "1.5MiB", "-4KiB", "KiB", "99999999999999999999", "4TiB"] {
            let error = spec(text).expect_err(text).to_string();
            assert!(error.contains("4KiB to 1GiB"), "{error}");
        }
    }

    #[test]
    fn operations_go_all_over_the_buffer() {
        let mut buffer = Buffer { words: vec![1; 64 * LINE], lines: 64, x: 1 };
        buffer.run(4096);
        let touched = buffer.words.iter().filter(|&&word| word > 1).count();
        assert_eq!(touched, 64);
        assert_eq!(buffer.words.iter().map(|word| word / 2).sum::<u64>(), 4096);
    }
}
