//! Lines and numbers of text results, with the place of whatever is wrong.

use std::{borrow::Cow, collections::BTreeMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, MapAccess, Visitor},
};

use rtproof_stats::{Bin, Bins, Layout};

use super::{BINS_MAX, Hints, ImportError, ImportedThread};
use crate::error::Contradiction;

/// Bytes at either end of a file that recognition looks at.
const PEEK_BYTES: usize = 64 << 10;

/// The first part of a file as text, for recognition.
pub(super) fn head(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&bytes[..bytes.len().min(PEEK_BYTES)])
}

/// The last part of a file as text, for recognition.
pub(super) fn tail(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(PEEK_BYTES)..])
}

#[derive(Clone, Copy)]
pub(super) struct ImportText<'a> {
    name: &'a str,
    text: &'a str,
}

/// A line and its number, from 1 on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ImportLine<'a> {
    pub(super) number: u64,
    pub(super) text: &'a str,
    pub(super) name: &'a str,
}

impl<'a> ImportText<'a> {
    /// The text of a file. All tools end each line, so a file that does not was cut off.
    pub(super) fn new(bytes: &'a [u8], hints: &'a Hints) -> Result<Self, ImportError> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let what = "no text (UTF-8), expected the text output of a tool";
            hints.at_byte(error.valid_up_to(), what)
        })?;
        let text = Self { name: &hints.name, text };
        if let Some(at) = bytes.iter().position(|&byte| byte == 0) {
            return Err(hints.at_byte(at, "a zero byte, expected the text output of a tool"));
        }
        if !bytes.ends_with(b"\n") {
            return Err(text.last().at(
                "ends without a line end: the file was cut off here; take it again from the tool",
            ));
        }
        Ok(text)
    }

    pub(super) fn lines(self) -> impl Iterator<Item = ImportLine<'a>> + Clone {
        let lines = (1..).zip(self.text.lines());
        lines.map(move |(number, text)| ImportLine { number, text, name: self.name })
    }

    /// An error at a line.
    pub(super) fn at(self, number: u64, what: impl Into<String>) -> ImportError {
        ImportLine { number, text: "", name: self.name }.at(what)
    }

    /// An error at the end: something that the tool writes is not there.
    pub(super) fn cut(self, expected: &str) -> ImportError {
        self.last().at(format!("ends without {expected}: the file was cut off or edited"))
    }

    fn last(self) -> ImportLine<'a> {
        self.lines().last().unwrap_or(ImportLine { number: 1, text: "", name: self.name })
    }
}

impl ImportLine<'_> {
    /// An error at the line.
    pub(super) fn at(self, what: impl Into<String>) -> ImportError {
        ImportError::Line { name: self.name.into(), line: self.number, what: what.into() }
    }

    /// An error at something in the line.
    pub(super) fn unexpected(self, found: &str, expected: &str) -> ImportError {
        self.at(format!("{}, expected {expected}", quoted(found)))
    }

    /// A number of the line.
    pub(super) fn number(self, word: &str) -> Result<u64, ImportError> {
        match word.parse() {
            Ok(number) if number <= i64::MAX as u64 => Ok(number),
            _ => Err(self.unexpected(word, "a number")),
        }
    }

    /// Numbers to the end of the line.
    pub(super) fn numbers(self, words: &str) -> Result<Vec<u64>, ImportError> {
        words.split_whitespace().map(|word| self.number(word)).collect()
    }

    /// The number of a CPU.
    pub(super) fn cpu(self, word: &str) -> Result<u32, ImportError> {
        let cpu = self.number(word)?;
        u32::try_from(cpu).map_err(|_| self.unexpected(word, "the number of a CPU"))
    }

    /// A number of units in nanoseconds.
    pub(super) fn ns(self, value: u64, unit_ns: u64) -> Result<u64, ImportError> {
        scaled(value, unit_ns).ok_or_else(|| self.at(too_large(value)))
    }
}

/// A value in nanoseconds; `None`: no such time.
pub(super) fn scaled(value: u64, unit_ns: u64) -> Option<u64> {
    value.checked_mul(unit_ns).filter(|&ns| ns <= i64::MAX as u64)
}

pub(super) fn too_large(value: u64) -> String {
    format!("{value}, expected a time of less than 292 years")
}

/// Common divisor of row labels: their width, or a multiple of it.
pub(super) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The text in quotes; after 48 characters, `...` stands for the rest.
pub(super) fn quoted(text: &str) -> String {
    const LONG: usize = 48;
    match text.char_indices().nth(LONG) {
        Some((at, _)) => format!("{:?}...", &text[..at]),
        None => format!("{text:?}"),
    }
}

/// The word after a key, e.g. of `Min:` in `Min:     12 Act:`.
pub(super) fn field<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let at = line.find(key)?;
    line[at + key.len()..].split_whitespace().next()
}

/// A line without what moves a terminal's cursor or colours its text.
pub(super) fn plain(line: &str) -> Cow<'_, str> {
    if !line.contains(['\x1b', '\r']) {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\r' => {}
            '\x1b' => {
                // Parameters, then one letter; or a letter or mark alone. Anything else is damage,
                // and must not join what stands on either side of it.
                let is_whole = match chars.next() {
                    Some('[') => {
                        let last = chars.by_ref().find(|c| !matches!(c, ' '..='?'));
                        last.is_none_or(|last| matches!(last, '@'..='~'))
                    }
                    Some(c) => matches!(c, 'c' | '7' | '8' | '=' | '>' | 'D' | 'E' | 'H' | 'M'),
                    None => true,
                };
                if !is_whole {
                    out.push('\u{fffd}');
                }
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// `12`, `1.5` or `0.25` of a unit, in nanoseconds.
pub(super) fn decimal_ns(word: &str, unit_ns: u64) -> Option<u64> {
    let (whole, part) = word.split_once('.').unwrap_or((word, ""));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || part.len() > 9 || !(part.is_empty() || digits(part)) {
        return None;
    }
    let scale = 10_u64.pow(part.len() as u32);
    let part = if part.is_empty() { 0 } else { part.parse::<u64>().ok()? };
    let rest = u128::from(part) * u128::from(unit_ns) / u128::from(scale);
    scaled(whole.parse().ok()?, unit_ns)?.checked_add(rest as u64)
}

/// A duration as rtla writes it: days, then hours, minutes, seconds.
pub(super) fn days_clock_ns(text: &str) -> Option<u64> {
    let mut words = text.split_whitespace();
    let (days, clock) = (words.next()?.parse::<u64>().ok()?, words.next()?);
    let mut parts = clock.split(':').map(|part| part.parse::<u64>().ok());
    let (h, m, s) = (parts.next()??, parts.next()??, parts.next()??);
    if h > 23 || m > 59 || s > 60 {
        return None;
    }
    let seconds = days.checked_mul(86_400)?.checked_add(h * 3600 + m * 60 + s)?;
    scaled(seconds, 1_000_000_000)
}

/// Cells of a series, as a tool counts: so many of each value.
#[derive(Debug, Default)]
pub(super) struct SeriesCells {
    bins: Vec<Bin>,
}

impl SeriesCells {
    /// `n` samples from `low_ns` on, in a cell `width_ns` wide; cells come in ascending order.
    pub(super) fn push(&mut self, low_ns: u64, width_ns: u64, n: u64) -> Result<(), Contradiction> {
        if n == 0 {
            return Ok(());
        }
        if self.bins.len() >= BINS_MAX {
            return Err(format!("more than {BINS_MAX} different values").into());
        }
        if self.bins.last().is_some_and(|last| low_ns <= last.high_ns) {
            return Err(format!("the cell from {low_ns} ns comes after a later one").into());
        }
        self.bins.push(Bin { low_ns, high_ns: low_ns.saturating_add(width_ns - 1), n });
        Ok(())
    }

    /// Smallest value of the first and of the last cell.
    pub(super) fn edges(&self) -> Option<(u64, u64)> {
        Some((self.bins.first()?.low_ns, self.bins.last()?.low_ns))
    }

    pub(super) fn total(&self) -> u64 {
        self.bins.iter().fold(0, |sum, bin| sum.saturating_add(bin.n))
    }

    /// The cells, with `over` samples from `from_ns` on, the largest of which is `max_ns`.
    pub(super) fn finish(
        mut self,
        over: u64,
        from_ns: u64,
        max_ns: Option<u64>,
    ) -> Result<Bins, Contradiction> {
        if over > 0 {
            let high_ns = max_ns.unwrap_or(from_ns);
            if high_ns < from_ns {
                return Err(format!(
                    "{over} samples beyond the last row ({from_ns} ns), but the largest is \
                     {high_ns} ns"
                )
                .into());
            }
            self.push(from_ns, high_ns - from_ns + 1, over)?;
        }
        Bins::from_bins(self.bins).map_err(|error| error.to_string().into())
    }
}

// Single samples of a file, counted by value, within bounds whatever the file holds.

/// Different values kept exactly; beyond, values go to cells at most 0.8 % wide.
const EXACT_MAX: usize = 1 << 16;

#[derive(Debug, Default)]
pub(super) struct ValueCounter {
    exact: BTreeMap<u64, u64>,
    /// By bucket of [`Layout::FINE`], once there are too many values.
    coarse: Option<BTreeMap<usize, u64>>,
    width_ns: u64,
    n: u64,
    sum_ns: u128,
    extremes_ns: Option<(u64, u64)>,
}

impl ValueCounter {
    /// Adds `n` samples of a value that covers `width_ns` from it on.
    pub(super) fn push(&mut self, ns: u64, width_ns: u64, n: u64) -> Result<(), Contradiction> {
        self.width_ns = self.width_ns.max(width_ns);
        self.n = self.n.checked_add(n).ok_or("more than 2^64 samples")?;
        self.sum_ns = self.sum_ns.saturating_add(u128::from(ns) * u128::from(n));
        let (min, max) = self.extremes_ns.unwrap_or((ns, ns));
        self.extremes_ns = Some((min.min(ns), max.max(ns)));
        match &mut self.coarse {
            Some(coarse) => *coarse.entry(Layout::FINE.index(ns)).or_default() += n,
            None => *self.exact.entry(ns).or_default() += n,
        }
        if self.exact.len() > EXACT_MAX {
            let mut coarse = BTreeMap::new();
            for (ns, n) in std::mem::take(&mut self.exact) {
                *coarse.entry(Layout::FINE.index(ns)).or_default() += n;
            }
            self.coarse = Some(coarse);
        }
        Ok(())
    }

    /// Gives a series its count, extremes, mean and distribution.
    pub(super) fn fill(self, thread: &mut ImportedThread) {
        thread.n = self.n;
        thread.min_ns = self.extremes_ns.map(|(min, _)| min);
        thread.max_ns = self.extremes_ns.map(|(_, max)| max);
        thread.mean_ns = (self.n > 0).then(|| self.sum_ns as f64 / self.n as f64);
        let width_ns = self.width_ns.max(1);
        let bins: Vec<Bin> = match self.coarse {
            None => {
                let bin = |(low_ns, n): (u64, u64)| Bin {
                    low_ns,
                    high_ns: low_ns.saturating_add(width_ns - 1),
                    n,
                };
                self.exact.into_iter().map(bin).collect()
            }
            Some(coarse) => {
                let last = Layout::FINE.len() - 1;
                let high = |at| if at == last { u64::MAX >> 1 } else { Layout::FINE.upper(at) };
                let bin = |(at, n)| Bin { low_ns: Layout::FINE.lower(at), high_ns: high(at), n };
                coarse.into_iter().map(bin).collect()
            }
        };
        // Values are multiples of their width, so cells never overlap; if they did, they merge.
        thread.bins = Bins::from_bins(bins.clone()).unwrap_or_else(|_| {
            let mut all = Bins::default();
            for bin in bins {
                all.merge(&Bins::from_bins(vec![bin]).unwrap_or_default());
            }
            all
        });
    }
}

// JSON of rt-tests and jitterdebugger: with keys that end in a colon and command lines that are
// not escaped, as the tools write them.

/// An object as pairs in its own order; nothing is dropped when a key comes twice.
#[derive(Debug)]
pub(super) struct Pairs<T>(pub(super) Vec<(String, T)>);

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Of<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Of<T> {
            type Value = Pairs<T>;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Pairs<T>, M::Error> {
                let mut pairs: Vec<(String, T)> = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    if pairs.len() >= BINS_MAX {
                        return Err(serde::de::Error::custom(format!(
                            "more than {BINS_MAX} entries"
                        )));
                    }
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        from.deserialize_map(Of(PhantomData))
    }
}

impl<T> Pairs<T> {
    /// The pairs by the number of their key, ascending.
    pub(super) fn by_number(self) -> Result<Vec<(u64, T)>, Contradiction> {
        let mut all = Vec::with_capacity(self.0.len());
        for (key, value) in self.0 {
            let number =
                key.parse::<u64>().map_err(|_| format!("key {key:?}, expected a number"))?;
            all.push((number, value));
        }
        all.sort_by_key(|(number, _)| *number);
        match all.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(format!("key \"{}\" comes twice", pair[0].0).into()),
            None => Ok(all),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SysInfo {
    pub(super) nodename: String,
    pub(super) release: String,
    pub(super) version: String,
    pub(super) machine: String,
    pub(super) resolution_in_ns: Option<u64>,
}

impl SysInfo {
    /// Host and kernel in one line.
    pub(super) fn text(&self) -> Option<String> {
        let words = [&self.nodename, &self.release, &self.version, &self.machine];
        let words: Vec<&str> =
            words.iter().map(|word| word.as_str()).filter(|word| !word.is_empty()).collect();
        (!words.is_empty()).then(|| words.join(" "))
    }
}

/// Reads a document; `true`: its command line had to be repaired first.
pub(super) fn parse_json<T: DeserializeOwned>(
    bytes: &[u8],
    hints: &Hints,
) -> Result<(T, bool), ImportError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| hints.at_byte(error.valid_up_to(), "no text (UTF-8), expected JSON"))?;
    let first = match serde_json::from_str(text) {
        Ok(value) => return Ok((value, false)),
        Err(error) => error,
    };
    if let Cow::Owned(repaired) = repair(text)
        && let Ok(value) = serde_json::from_str(&repaired)
    {
        return Ok((value, true));
    }
    Err(ImportError::Line {
        name: hints.name.clone(),
        line: first.line() as u64,
        what: format!("{first}; expected the JSON of the tool, whole"),
    })
}

/// Quotes and backslashes in the values of the command line and of `sysinfo` are escaped, as the
/// tools do not. A value ends with the last quote of its line.
fn repair(text: &str) -> Cow<'_, str> {
    const RAW: [&str; 6] = [
        "\"cmdline:\"",
        "\"cmdline\"",
        "\"nodename\"",
        "\"release\"",
        "\"version\"",
        "\"sysname\"",
    ];
    let mut out = String::with_capacity(text.len() + 64);
    let mut any = false;
    for line in text.split_inclusive('\n') {
        let value = RAW.iter().find_map(|key| {
            let after = line.trim_start().strip_prefix(key)?.trim_start().strip_prefix(':')?;
            let after = after.trim_start().strip_prefix('"')?;
            let end = after.rfind('"')?;
            Some(&after[..end])
        });
        let Some(value) = value.filter(|value| value.contains(['"', '\\', '\t'])) else {
            out.push_str(line);
            continue;
        };
        let start = value.as_ptr() as usize - line.as_ptr() as usize;
        out.push_str(&line[..start]);
        for c in value.chars() {
            match c {
                '"' | '\\' => out.extend(['\\', c]),
                '\t' => out.push_str("\\t"),
                c => out.push(c),
            }
        }
        out.push_str(&line[start + value.len()..]);
        any = true;
    }
    if any { Cow::Owned(out) } else { Cow::Borrowed(text) }
}

/// Whether a file begins as a JSON object.
pub(super) fn is_object(bytes: &[u8]) -> bool {
    bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

/// A time as in mail headers, seconds since 1970.
pub(super) fn mail_time_s(text: &str) -> Option<i64> {
    jiff::fmt::rfc2822::parse(text).ok().map(|zoned| zoned.timestamp().as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_leave_nothing_behind() {
        assert_eq!(plain("\x1b[4Apolicy: fifo\x1b[K\r"), "policy: fifo");
        assert_eq!(plain("\x1bcCPU \x1b[2;30;47mCOUNT\x1b[0;0;0m"), "CPU COUNT");
        assert_eq!(plain("\x1b["), "");
        // Damage does not make one number of two.
        assert_eq!(plain("26\x1b02"), "26\u{fffd}2");
        assert_eq!(plain("26\x1b[\x012"), "26\u{fffd}2");
    }

    #[test]
    fn decimals_and_durations() {
        assert_eq!(decimal_ns("1.25", 1000), Some(1250));
        assert_eq!(decimal_ns("007", 1000), Some(7000));
        for bad in ["", ".", "1.", ".5", "-1", "1e3", "1.0000000001", "99999999999999999999"] {
            let found = decimal_ns(bad, 1000);
            assert!(found.is_none() || bad == "1.", "{bad}: {found:?}");
        }
        assert_eq!(days_clock_ns("  1 00:10:01"), Some(87_001_000_000_000));
        assert_eq!(days_clock_ns("0 00:99:00"), None);
        assert_eq!(field("C:  12 Min:   3 Act:", "Min:"), Some("3"));
    }

    #[test]
    fn cells_are_checked() {
        let mut cells = SeriesCells::default();
        cells.push(3000, 1000, 2).expect("a cell");
        cells.push(4000, 1000, 0).expect("nothing");
        cells.push(3500, 1000, 1).expect_err("it lies before");
        assert_eq!((cells.edges(), cells.total()), (Some((3000, 3000)), 2));
        let bins = cells.finish(4, 10_000, Some(12_000)).expect("cells");
        let all: Vec<Bin> = bins.iter().copied().collect();
        assert_eq!(all[1], Bin { low_ns: 10_000, high_ns: 12_000, n: 4 });
        SeriesCells::default().finish(1, 10_000, Some(9_000)).expect_err("below the rows");
    }
}

#[cfg(test)]
mod counter_tests {
    use super::*;
    use crate::import::SampleKind;
    use crate::import::draft::series;

    #[test]
    fn many_values_lose_no_count() {
        let mut counter = ValueCounter::default();
        let values = (0..100_000_u64).map(|i| i * 977 % 10_000_019);
        for ns in values.clone() {
            counter.push(ns, 1, 2).expect("room");
        }
        assert!(counter.coarse.is_some() && counter.exact.is_empty());
        let mut thread = series("x", SampleKind::Latency);
        counter.fill(&mut thread);
        assert_eq!((thread.n, thread.bins.total()), (200_000, 200_000));
        assert_eq!(thread.max_ns, values.clone().max());
        let mut few = ValueCounter::default();
        few.push(3000, 1000, 1).expect("room");
        few.push(5000, 1000, 1).expect("room");
        few.fill(&mut thread);
        assert_eq!((thread.mean_ns, thread.bins.quantile(1.0)), (Some(4000.0), Some(5999)));
    }
}

#[cfg(test)]
mod json_tests {
    use super::*;

    #[test]
    fn quotes_in_a_command_line_are_escaped() {
        let broken = "{\n  \"cmdline:\": \"cyclictest -t1 --x=\"a b\" c:\\d\",\n  \"a\": 1\n}\n";
        let fixed = repair(broken);
        let value: serde_json::Value = serde_json::from_str(&fixed).expect("JSON now");
        assert_eq!(value["cmdline:"], "cyclictest -t1 --x=\"a b\" c:\\d");
        assert!(matches!(repair("{\"cmdline\": \"x\"}"), Cow::Borrowed(_)));
    }

    #[test]
    fn no_key_is_dropped() {
        let twice: Pairs<u64> =
            serde_json::from_str("{\"3\": 1, \"2\": 5, \"3\": 2}").expect("pairs");
        assert!(twice.by_number().expect_err("twice").to_string().contains("\"3\""));
        let word: Pairs<u64> = serde_json::from_str("{\"x\": 1}").expect("pairs");
        word.by_number().expect_err("no number");
        assert_eq!(mail_time_s("Mon, 07 Sep 2026 14:29:23 -0500"), Some(1_788_809_363));
    }
}
