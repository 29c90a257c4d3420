//! What a program writes of its cycles: one line each. No I/O here.

use crate::Failure;

/// Bytes of the longest line that a program may write.
pub(super) const LINE_MAX: usize = 256;

/// Largest value, nanoseconds: what a histogram holds, an hour, and more than any cycle takes.
const VALUE_MAX_NS: u64 = 3_600_000_000_000;

/// Largest time of CLOCK_MONOTONIC, nanoseconds: thirty years since boot.
const TIME_MAX_NS: u64 = 1_000_000_000_000_000_000;

/// Most cycles that one line can call missed.
const MISSED_MAX: u64 = 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProtocolLine {
    /// `VALUE`: a cycle, and how long or how late it was.
    Value(u64),
    /// `DUE VALUE`: the same, and when it was due.
    Due { due_ns: u64, value_ns: u64 },
    /// `missed N`: cycles that were due and did not come.
    Missed(u64),
    /// A comment or an empty line.
    Nothing,
}

/// What lines may look like, for messages.
pub(super) const EXPECTED: &str =
    "expected `VALUE`, `DUE VALUE` (whole nanoseconds), `missed N` or `# text`";

/// Reads a line without its end; `Err`: what is wrong with it.
pub(super) fn line(text: &str) -> Result<ProtocolLine, &'static str> {
    let text = text.trim();
    if text.is_empty() || text.starts_with('#') {
        return Ok(ProtocolLine::Nothing);
    }
    let words: Vec<&str> = text.split_ascii_whitespace().take(3).collect();
    match *words {
        ["missed", count] => number(count, MISSED_MAX)
            .map(ProtocolLine::Missed)
            .ok_or("missed is a number up to 1000000000"),
        [value] => value_ns(value).map(ProtocolLine::Value),
        [due, value] => {
            let due_ns = number(due, TIME_MAX_NS).ok_or(EXPECTED)?;
            Ok(ProtocolLine::Due { due_ns, value_ns: value_ns(value)? })
        }
        _ => Err(EXPECTED),
    }
}

fn value_ns(text: &str) -> Result<u64, &'static str> {
    match number(text, u64::MAX) {
        None => Err(EXPECTED),
        Some(ns) if ns > VALUE_MAX_NS => {
            Err("a value of more than an hour; values are nanoseconds")
        }
        Some(ns) => Ok(ns),
    }
}

/// Digits only: no sign, no fraction.
fn number(text: &str, max: u64) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|&number| digits && number <= max)
}

/// Bytes as they come, to whole lines. Bounded: a line that is too long ends it.
#[derive(Debug, Default)]
pub(super) struct Lines {
    partial: Vec<u8>,
    /// Lines so far, all kinds.
    pub(super) count: u64,
}

/// Why a line cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of its output, `{text}`: {why}")]
pub(super) struct Malformed {
    /// Number, from 1.
    pub(super) line: u64,
    /// The text, shortened, without control characters.
    pub(super) text: String,
    pub(super) why: &'static str,
}

impl From<Malformed> for Failure {
    fn from(error: Malformed) -> Self {
        Self(error.to_string())
    }
}

impl Lines {
    /// Hands each whole line to `take`.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(ProtocolLine) -> Result<(), &'static str>,
    ) -> Result<(), Malformed> {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            self.partial.extend_from_slice(&rest[..end.min(LINE_MAX + 1)]);
            rest = &rest[end + 1..];
            self.count += 1;
            let read = self.check().and_then(|text| line(text).and_then(&mut take));
            let why = read.err();
            if let Some(why) = why {
                return Err(self.malformed(self.count, why));
            }
            self.partial.clear();
        }
        self.partial.extend_from_slice(&rest[..rest.len().min(LINE_MAX + 1)]);
        match self.check() {
            Err(why) if self.partial.len() > LINE_MAX => Err(self.malformed(self.count + 1, why)),
            _ => Ok(()),
        }
    }

    fn check(&self) -> Result<&str, &'static str> {
        if self.partial.len() > LINE_MAX {
            return Err("a line of more than 256 bytes");
        }
        std::str::from_utf8(&self.partial).map_err(|_| EXPECTED)
    }

    fn malformed(&self, line: u64, why: &'static str) -> Malformed {
        let text = String::from_utf8_lossy(&self.partial);
        let printable = |c: char| if c.is_control() { '?' } else { c };
        Malformed { line, text: text.chars().take(40).map(printable).collect(), why }
    }
}

/// Which cycles were missed, from the times at which those that came were due.
#[derive(Debug)]
pub(super) struct Grid {
    period_ns: u64,
    /// When the last cycle was due and when it was done.
    last: Option<(u64, u64)>,
}

/// What a line with a due time says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Cycles that were due since the last one that came, this one included.
    pub(super) due: u64,
    /// How late the first of the missed ones was, when the last cycle was done.
    pub(super) first_late_ns: u64,
}

impl Grid {
    pub(super) const fn new(period_ns: u64) -> Self {
        Self { period_ns, last: None }
    }

    /// A cycle that was due then and took, or was late by, `value_ns`.
    pub(super) fn step(&mut self, due_ns: u64, value_ns: u64) -> Result<Step, &'static str> {
        let Some((last_ns, done_ns)) = self.last.replace((due_ns, due_ns + value_ns)) else {
            return Ok(Step { due: 1, first_late_ns: 0 });
        };
        let Some(since_ns) = due_ns.checked_sub(last_ns).filter(|&since| since > 0) else {
            return Err("it was due no later than the cycle before it; due times rise");
        };
        if since_ns > VALUE_MAX_NS {
            return Err("it was due more than an hour after the cycle before it");
        }
        // A program that drifts is not on the grid: half a period to either side is the same.
        let due = ((since_ns + self.period_ns / 2) / self.period_ns).max(1);
        Ok(Step { due, first_late_ns: done_ns.saturating_sub(last_ns + self.period_ns) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        assert_eq!(line("1500"), Ok(ProtocolLine::Value(1500)));
        assert_eq!(line(" 0 "), Ok(ProtocolLine::Value(0)));
        assert_eq!(line("12 7\r"), Ok(ProtocolLine::Due { due_ns: 12, value_ns: 7 }));
        assert_eq!(line("missed 3"), Ok(ProtocolLine::Missed(3)));
        assert_eq!(
            (line(""), line("# warm")),
            (Ok(ProtocolLine::Nothing), Ok(ProtocolLine::Nothing))
        );
    }

    #[test]
    fn what_is_no_line_is_refused() {
        for text in ["x", "-1", "+1", "1.5", "1 2 3", "missed", "missed -1", "missed 1 2", "1us"] {
            assert!(line(text).is_err(), "{text}");
        }
        assert!(line("99999999999999999999").is_err());
        assert!(line("3600000000001").expect_err("over an hour").contains("an hour"));
        assert!(line("9000000000000000000 1").is_err());
        assert!(line("missed 1000000001").is_err());
    }

    fn feed(chunks: &[&[u8]]) -> (Vec<ProtocolLine>, Result<(), Malformed>) {
        let (mut lines, mut got) = (Lines::default(), Vec::new());
        let mut take = |line| {
            got.push(line);
            Ok(())
        };
        let end = chunks.iter().try_for_each(|chunk| lines.feed(chunk, &mut take));
        (got, end)
    }

    #[test]
    fn lines_come_in_any_pieces() {
        let (got, end) = feed(&[b"1", b"0\n20 3", b"0\nmis", b"sed 2\n7"]);
        let due = ProtocolLine::Due { due_ns: 20, value_ns: 30 };
        assert_eq!(
            (got, end),
            (vec![ProtocolLine::Value(10), due, ProtocolLine::Missed(2)], Ok(()))
        );
    }

    #[test]
    fn a_malformed_line_is_named_by_number_and_text() {
        let (got, end) = feed(&[b"1\n2\nfoo\x1b[31m bar\n3\n"]);
        let error = end.expect_err("no number").to_string();
        assert_eq!(got.len(), 2);
        assert!(error.starts_with("line 3 of its output, `foo?[31m bar`: expected"), "{error}");
        let long = [b'1'; 5000];
        let error = feed(&[b"1\n", &long]).1.expect_err("too long").to_string();
        assert!(error.starts_with("line 2 ") && error.contains("256 bytes"), "{error}");
        let error = feed(&[&long, b"\n"]).1.expect_err("too long");
        assert_eq!((error.line, error.text.len()), (1, 40));
        assert!(feed(&[b"\xff\xfe\n"]).1.is_err());
    }

    #[test]
    fn due_times_show_what_was_missed() {
        let mut grid = Grid::new(1000);
        let step = |due, first_late_ns| Ok(Step { due, first_late_ns });
        assert_eq!(grid.step(5000, 10), step(1, 0));
        assert_eq!(grid.step(6000, 3200), step(1, 0));
        assert_eq!(grid.step(10_000, 10), step(4, 2200), "7000, 8000 and 9000 did not come");
        assert_eq!(grid.step(11_400, 10), step(1, 0), "drift is no missed cycle");
        assert_eq!(grid.step(11_500, 10), step(1, 0));
        assert!(grid.step(11_500, 10).is_err());
        assert!(Grid::new(1000).step(5, 5).is_ok());
        grid.step(20_000, 1).expect("later");
        assert!(grid.step(20_000 + VALUE_MAX_NS + 1, 1).is_err());
    }
}
