//! HdrHistogram interval logs, V2: intervals of one tag are added up.
//!
//! An own decoder, after the public format (HdrHistogram's EncodableHistogram: a cookie, lengths,
//! the grid, then counts as zig-zag LEB128, runs of zeros as negative numbers; all of it deflated,
//! then in base64). It holds what a line unpacks to within bounds, whatever lengths it claims.

use std::{collections::BTreeMap, io::Read};

use flate2::read::ZlibDecoder;

use rtproof_stats::{Bin, Bins};

use super::draft::{blank, series};
use super::text::{ImportLine, ImportText, decimal_ns, head, quoted, scaled};
use super::{BINS_MAX, Hints, ImportError, Imported, Importer, SampleKind, THREADS_MAX};
use crate::error::Contradiction;

const DEFLATED: u32 = 0x1c84_9314;

const PLAIN: u32 = 0x1c84_9313;

/// Bytes before the counts.
const HEADER: usize = 40;

/// Most that one histogram unpacks to: 5 digits over the whole range take 2.5 million counts.
const UNPACKED_MAX: u64 = 24 << 20;

pub(super) const HDR_LOG: Importer =
    Importer { id: "hdr-log", title: "HdrHistogram interval log, V2.", detect, read };

fn detect(bytes: &[u8]) -> bool {
    let head = head(bytes);
    head.lines().any(|line| {
        line.starts_with("#[Histogram log format version")
            || line.starts_with("\"StartTimestamp\"")
            || line.contains(",HIST")
    })
}

fn read(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let text = ImportText::new(bytes, hints)?;
    let unit_ns = hints.unit_ns.unwrap_or(1);
    let mut imported = blank("HdrHistogram", unit_ns, hints);
    let mut tags: BTreeMap<String, BTreeMap<(u64, u64), u64>> = BTreeMap::new();
    let (mut from, mut to) = (None, None);
    let mut starts = BTreeMap::new();
    for line in text.lines() {
        let shown = line.text.trim();
        if let Some(comment) = shown.strip_prefix("#[") {
            about(&mut imported, comment.trim_end_matches(']'));
            continue;
        }
        if shown.is_empty() || shown.starts_with(['#', '"']) {
            continue;
        }
        let interval = Interval::of(line, shown)?;
        if starts.insert(interval.tag, interval.start_ns).is_some_and(|t| t >= interval.start_ns) {
            return Err(
                line.at("starts not later than the interval before it; import each run by itself")
            );
        }
        from = from.or(Some(interval.start_ns));
        to = Some(interval.start_ns.saturating_add(interval.length_ns));
        if tags.len() >= THREADS_MAX && !tags.contains_key(interval.tag) {
            return Err(line.at(format!("more than {THREADS_MAX} tags")));
        }
        let cells = tags.entry(interval.tag.into()).or_default();
        let counts = decode(interval.histogram).map_err(|what| line.at(what))?;
        for (low, width, n) in counts {
            let ns = scaled(low, unit_ns).zip(scaled(width, unit_ns));
            let Some(key) = ns else {
                return Err(line.at(format!("a value of {low}")));
            };
            let sum = cells.entry(key).or_default();
            *sum = sum.checked_add(n).ok_or_else(|| line.at("more than 2^64 samples"))?;
        }
        if cells.len() > BINS_MAX {
            return Err(line.at(format!("more than {BINS_MAX} different values")));
        }
    }
    if tags.is_empty() {
        return Err(text.cut("an interval"));
    }
    if let (Some(from), Some(to)) = (from, to) {
        imported.duration_ns = imported.duration_ns.or(Some(u64::saturating_sub(to, from)));
    }
    for (tag, cells) in tags {
        imported.threads.push(thread(&tag, cells).map_err(|what| text.cut(&what.to_string()))?);
    }
    if hints.unit_ns.is_none() {
        imported.unit_assumed("nanoseconds");
    }
    imported.not_ended();
    imported.conclude();
    Ok(imported)
}

/// Comments that say something.
fn about(imported: &mut Imported, comment: &str) {
    if let Some(seconds) = comment.strip_prefix("StartTime: ") {
        let seconds = seconds.split([' ', '.']).next().and_then(|word| word.parse().ok());
        imported.started_s = imported.started_s.or(seconds);
    } else if imported.remarks.len() < 100 {
        imported.remarks.push(comment.into());
    }
}

fn thread(
    tag: &str,
    cells: BTreeMap<(u64, u64), u64>,
) -> Result<super::ImportedThread, Contradiction> {
    let label = if tag.is_empty() { "all".into() } else { tag.to_owned() };
    let mut thread = series(label, SampleKind::Unknown);
    // What rtproof writes: the tag says CPU and quantity.
    let cpu = tag.rsplit("cpu").next().filter(|rest| rest.len() < tag.len());
    thread.cpu = cpu.and_then(|cpu| cpu.parse().ok());
    if thread.cpu.is_some() {
        thread.kind = SampleKind::Latency;
    }
    let mut bins = Bins::default();
    let mut layer: Vec<Bin> = Vec::with_capacity(cells.len());
    let mut crossing: Vec<Bin> = Vec::new();
    for ((low_ns, width_ns), n) in cells {
        let bin = Bin { low_ns, high_ns: low_ns.saturating_add(width_ns - 1), n };
        match layer.last() {
            Some(last) if bin.low_ns <= last.high_ns => crossing.push(bin),
            _ => layer.push(bin),
        }
    }
    bins.merge(&Bins::from_bins(layer).map_err(|error| error.to_string())?);
    // Intervals of different grids: the few cells that cross go in one by one.
    if crossing.len() > 4096 {
        return Err("intervals of one grid only".into());
    }
    for bin in crossing {
        bins.merge(&Bins::from_bins(vec![bin]).map_err(|error| error.to_string())?);
    }
    thread.n = bins.total();
    thread.bins = bins;
    Ok(thread)
}

/// One line of a log.
struct Interval<'a> {
    tag: &'a str,
    start_ns: u64,
    length_ns: u64,
    histogram: &'a str,
}

impl<'a> Interval<'a> {
    fn of(line: ImportLine<'_>, shown: &'a str) -> Result<Self, ImportError> {
        let bad =
            |what: &str| line.at(format!("{what}, expected [Tag=...,]start,length,max,histogram"));
        let (tag, rest) = match shown.strip_prefix("Tag=") {
            Some(rest) => rest.split_once(',').ok_or_else(|| bad("a tag alone"))?,
            None => ("", shown),
        };
        let parts: Vec<&str> = rest.split(',').collect();
        let [start, length, max, histogram] = parts[..] else {
            return Err(bad(&format!("{} fields", parts.len())));
        };
        let seconds =
            |word: &str| decimal_ns(word, 1_000_000_000).ok_or_else(|| bad(&quoted(word)));
        decimal_ns(max, 1000).ok_or_else(|| bad(&quoted(max)))?;
        Ok(Self { tag, start_ns: seconds(start)?, length_ns: seconds(length)?, histogram })
    }
}

/// Smallest value, width and count of each cell that holds something.
fn decode(text: &str) -> Result<Vec<(u64, u64, u64)>, Contradiction> {
    let outer = base64(text)?;
    let word = |bytes: &[u8], at: usize| -> Result<u32, Contradiction> {
        let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
        four.map(u32::from_be_bytes).ok_or_else(|| "a histogram that is cut off".into())
    };
    let inner = match word(&outer, 0)? {
        PLAIN => outer,
        DEFLATED => {
            let claimed = word(&outer, 4)? as usize;
            let packed = &outer[8..];
            if claimed != packed.len() {
                return Err(format!(
                    "a histogram of {} bytes, but it says {claimed}",
                    packed.len()
                )
                .into());
            }
            let mut inner = Vec::new();
            let mut unpack = ZlibDecoder::new(packed).take(UNPACKED_MAX + 1);
            unpack
                .read_to_end(&mut inner)
                .map_err(|error| format!("a histogram that cannot be unpacked ({error})"))?;
            if inner.len() as u64 > UNPACKED_MAX {
                return Err(format!("a histogram of more than {UNPACKED_MAX} bytes").into());
            }
            inner
        }
        other => {
            return Err(format!(
                "a histogram of format {other:#010x}, expected V2 ({DEFLATED:#010x}); older \
                 ones are not read"
            )
            .into());
        }
    };
    if word(&inner, 0)? != PLAIN {
        return Err(format!(
            "a histogram of format {:#010x}, expected V2 ({PLAIN:#010x})",
            word(&inner, 0)?
        )
        .into());
    }
    let length = word(&inner, 4)? as usize;
    let digits = word(&inner, 12)?;
    let low = u64::from(word(&inner, 16)?) << 32 | u64::from(word(&inner, 20)?);
    let payload = inner.get(HEADER..).unwrap_or_default();
    if payload.len() != length {
        return Err(format!("counts of {} bytes, but it says {length}", payload.len()).into());
    }
    if word(&inner, 8)? != 0 {
        return Err("a shifted histogram (normalizing index offset), which is not read".into());
    }
    if digits > 5 || low == 0 {
        return Err(format!("{digits} digits from {low} on, expected 0 to 5 from 1 on").into());
    }
    cells(payload, Grid::new(digits, low))
}

/// Where the cells of a histogram lie.
struct Grid {
    half_bits: u32,
    unit_bits: u32,
}

impl Grid {
    fn new(digits: u32, low: u64) -> Self {
        let largest_exact = 2 * 10_u64.pow(digits);
        let bits = 64 - (largest_exact - 1).leading_zeros();
        Self { half_bits: bits.max(1) - 1, unit_bits: low.ilog2() }
    }

    /// Smallest value and width of cell `index`; `None`: beyond 2^63.
    fn cell(&self, index: u64) -> Option<(u64, u64)> {
        let (bucket, sub) = match index >> self.half_bits {
            0 => (0, index),
            up => {
                let half = 1 << self.half_bits;
                (u32::try_from(up - 1).ok()?, (index & (half - 1)) + half)
            }
        };
        let shift = bucket.checked_add(self.unit_bits)?;
        if shift >= 63 || sub > (i64::MAX as u64) >> shift {
            return None;
        }
        Some((sub << shift, 1 << shift))
    }
}

fn cells(mut payload: &[u8], grid: Grid) -> Result<Vec<(u64, u64, u64)>, Contradiction> {
    let (mut all, mut index) = (Vec::new(), 0_u64);
    while !payload.is_empty() {
        let number = zigzag(&mut payload)?;
        if number < 0 {
            index = index.saturating_add(number.unsigned_abs());
            continue;
        }
        if number > 0 {
            let (low, width) = grid
                .cell(index)
                .ok_or_else(|| format!("a count in cell {index}, which is beyond all"))?;
            all.push((low, width, number.unsigned_abs()));
        }
        index = index.saturating_add(1);
    }
    Ok(all)
}

/// One number: seven bits a byte, the ninth byte whole.
fn zigzag(bytes: &mut &[u8]) -> Result<i64, Contradiction> {
    let mut value = 0_u64;
    for i in 0..9 {
        let (&byte, rest) = bytes.split_first().ok_or("counts that are cut off")?;
        *bytes = rest;
        let bits = if i == 8 { u64::from(byte) } else { u64::from(byte & 0x7f) };
        value |= bits << (7 * i);
        if byte < 0x80 || i == 8 {
            break;
        }
    }
    Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
}

/// RFC 4648, section 4; padding must be there.
fn base64(text: &str) -> Result<Vec<u8>, Contradiction> {
    let bytes = text.as_bytes();
    if bytes.is_empty() || !bytes.len().is_multiple_of(4) {
        return Err(format!(
            "{} digits of base64, expected a multiple of 4: the line was cut off",
            bytes.len()
        )
        .into());
    }
    let padding = bytes.iter().rev().take_while(|&&byte| byte == b'=').count();
    if padding > 2 {
        return Err("base64 that ends with more than two =".into());
    }
    let mut out = Vec::with_capacity(bytes.len() / 4 * 3);
    for group in bytes.chunks_exact(4) {
        let mut bits = 0_u32;
        for (i, &byte) in group.iter().enumerate() {
            let digit = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'a'..=b'z' => byte - b'a' + 26,
                b'0'..=b'9' => byte - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                b'=' if i >= 2 => 0,
                _ => return Err(format!("{:?} in base64", char::from(byte)).into()),
            };
            bits = bits << 6 | u32::from(digit);
        }
        out.extend_from_slice(&bits.to_be_bytes()[1..]);
    }
    out.truncate(out.len() - padding);
    Ok(out)
}
