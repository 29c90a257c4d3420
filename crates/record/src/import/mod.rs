//! Result files of other tools, read to the last sample: a file for each tool, one list.
//!
//! A format is recognised by its content, never by its name. What a file does not say stays
//! unknown, what may mislead is a [`Doubt`]; a file that is cut off or holds anything unexpected is
//! an error with the line or the byte, never a shorter result.

mod cyclictest;
mod cyclictest_verbose;
mod draft;
mod hdr_log;
mod hwlat;
mod jitterdebugger;
mod oslat;
mod rtla;
mod text;

pub use draft::DOUBTS;

use std::{
    collections::BTreeMap,
    io::{self, Read},
    path::Path,
};

use sha2::{Digest, Sha256};
use thiserror::Error;

use rtproof_host::{Capture, CpuList, Facts, Root, facts::tasks::Policy};

use crate::run::{Cost, Meta, RunEnd};
use crate::{
    BudgetClass, Finished, Options, Requirement, RunHead, RunTail, Snapshot, Start, WriteError,
    Writer,
};

pub use crate::effects::{
    BINS_MAX, Doubt, Imported, ImportedThread, Omitted, SampleKind, THREADS_MAX, ToolValue,
};

/// All formats; the first that detects its format in a file reads it.
pub const FORMATS: &[Importer] = &[
    jitterdebugger::RAW,
    jitterdebugger::JSON,
    oslat::OSLAT_JSON,
    cyclictest_verbose::JSON,
    rtla::TIMERLAT_HIST,
    rtla::OSNOISE_HIST,
    rtla::TIMERLAT_TOP,
    rtla::OSNOISE_TOP,
    rtla::STOP,
    hdr_log::HDR_LOG,
    hwlat::TRACER,
    hwlat::DETECT,
    hwlat::TABLE,
    hwlat::RAW,
    oslat::OSLAT_TEXT,
    cyclictest::HISTOGRAM,
    cyclictest::ROWS,
    cyclictest::SUMMARY,
    cyclictest_verbose::VERBOSE,
    jitterdebugger::CSV,
];

/// Ids of all formats, for messages.
fn known() -> String {
    FORMATS.iter().map(|format| format.id).collect::<Vec<_>>().join(", ")
}

/// Reads a result file by its path, `-` for standard input; `hints.name` is what errors call it.
///
/// # Errors
/// As [`read`], and if the file cannot be read or is larger than [`BYTES_MAX`].
pub fn read_file(path: &Path, hints: &Hints) -> Result<Imported, ImportError> {
    let name = || hints.name.clone();
    let unreadable =
        |error: io::Error| ImportError::Unreadable { name: name(), why: error.to_string() };
    let is_input = path == Path::new("-");
    let file = crate::open_file(if is_input { Path::new("/dev/stdin") } else { path });
    let file = file.map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => {
            ImportError::Unreadable { name: name(), why: "a folder; name a file in it".into() }
        }
        _ => unreadable(error),
    })?;
    let metadata = file.metadata().map_err(unreadable)?;
    let mut bytes = Vec::new();
    // A pipe has no length, so what comes is counted, not what is claimed.
    let taken = if metadata.len() > BYTES_MAX {
        Ok(0)
    } else {
        file.take(BYTES_MAX + 1).read_to_end(&mut bytes)
    };
    let n = taken.map_err(unreadable)? as u64;
    if metadata.len().max(n) > BYTES_MAX {
        return Err(ImportError::Huge { name: name(), bytes: metadata.len().max(n) });
    }
    let mut imported = read(&bytes, hints)?;
    if let Some(name) = path.file_name() {
        imported.source = name.to_string_lossy().into_owned();
    }
    Ok(imported)
}

/// Reads a result file.
///
/// # Errors
/// Unknown format, or not as the tool writes it.
pub fn read(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let name = || hints.name.clone();
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(ImportError::Empty { name: name() });
    }
    if bytes.len() as u64 > BYTES_MAX {
        return Err(ImportError::Huge { name: name(), bytes: bytes.len() as u64 });
    }
    let found = match &hints.format {
        Some(asked) => FORMATS.iter().find(|format| format.id == asked).ok_or_else(|| {
            ImportError::UnknownFormat { requested: asked.clone(), known: known() }
        })?,
        None => match FORMATS.iter().find(|format| (format.detect)(bytes)) {
            Some(found) => found,
            None => return read_pasted(bytes, hints),
        },
    };
    // Where the result itself says how much it holds, a last line without an end may be whole.
    let is_counted = found.id == cyclictest::HISTOGRAM.id;
    let mut imported = if is_counted && !bytes.ends_with(b"\n") {
        let mut imported = (found.read)(&[bytes, b"\n"].concat(), hints)?;
        let text = "the last line has no end: the file may have been cut there; its counts are \
                    complete";
        imported.doubt("no-line-end", text);
        imported
    } else {
        (found.read)(bytes, hints)?
    };
    imported.dialect = found.id.into();
    imported.source.clone_from(&hints.name);
    imported.digest = digest(bytes);
    imported.check().map_err(|what| hints.at_byte(0, what))?;
    Ok(imported)
}

/// Reads a result out of a mail or an editor, which no format detects as it is.
fn read_pasted(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let name = || hints.name.clone();
    if is_trace(bytes) {
        return Err(ImportError::Trace { name: name() });
    }
    let unknown = || ImportError::Unknown { name: name(), begins: begins(bytes), known: known() };
    let plain = unpasted(bytes).ok_or_else(unknown)?;
    if !FORMATS.iter().any(|format| (format.detect)(&plain)) {
        return Err(if is_trace(&plain) { ImportError::Trace { name: name() } } else { unknown() });
    }
    let mut imported = read(&plain, hints)?;
    imported.digest = digest(bytes);
    Ok(imported)
}

/// Whether it is what `rtproof explain` reads, or says what to do with.
fn is_trace(bytes: &[u8]) -> bool {
    const MARKS: &[&str] = &[
        "# tracer:",
        " latency trace v",
        ": sched_switch:",
        "sched:sched_",
        "hit stop tracing, analyzing it",
        // perf sched timehist and latency; map has no head.
        "sch delay",
        "Avg delay ms",
    ];
    let head = text::head(bytes);
    let is_map = |line: &str| line.trim_start().starts_with('*') && line.contains(" secs ");
    bytes.starts_with(b"\x17\x08\x44tracing")
        || bytes.starts_with(b"PERFILE2")
        || MARKS.iter().any(|mark| head.contains(mark))
        || head.starts_with("cpus=")
        || head.lines().next().is_some_and(is_map)
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first bytes of a file, for a message.
fn begins(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(24)]);
    format!("{:?}", text.lines().next().unwrap_or_default())
}

// Description of a format of another tool.

/// Largest file that is read.
pub const BYTES_MAX: u64 = 512 << 20;

/// One format of one tool.
pub struct Importer {
    /// Name on the command line and in records.
    pub id: &'static str,
    /// Tool and format, for help.
    pub title: &'static str,
    /// Whether these bytes are of this format, by their content.
    detect: fn(&[u8]) -> bool,
    /// Reads them; an error if anything differs from what the tool writes.
    read: fn(&[u8], &Hints) -> Result<Imported, ImportError>,
}

/// Information about a file from the user that the file lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Name of the file, for messages and the record.
    pub name: String,
    /// Format, by its id; `None`: by content.
    pub format: Option<String>,
    /// Command line that made it.
    pub command: Option<String>,
    /// Period of the first thread.
    pub period_ns: Option<u64>,
    /// How long it measured.
    pub duration_ns: Option<u64>,
    /// Nanoseconds in one unit of its values, where the format does not fix it.
    pub unit_ns: Option<u64>,
}

impl Hints {
    /// The error of a byte.
    fn at_byte(&self, offset: usize, what: impl Into<String>) -> ImportError {
        let (name, what) = (self.name.clone(), what.into());
        ImportError::Byte { name, offset: offset as u64, what }
    }
}

/// A file could not be imported.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ImportError {
    #[error("{name}: empty; the tool wrote nothing, look at its own messages")]
    Empty { name: String },
    #[error("{name}: cannot be read ({why})")]
    Unreadable { name: String, why: String },
    /// Larger than any result.
    #[error(
        "{name}: {bytes} bytes, expected {BYTES_MAX} at most; import the histogram of the tool, \
         not its samples"
    )]
    Huge { name: String, bytes: u64 },
    /// No importer knows it.
    #[error(
        "{name}: not the result of a tool that rtproof knows (begins with {begins}); give it as \
         the tool wrote it, or name its format with --format: {known}"
    )]
    Unknown {
        name: String,
        /// The first bytes of the file, quoted.
        begins: String,
        /// Ids of the known formats.
        known: String,
    },
    /// It is a trace: events, not results.
    #[error(
        "{name}: this is a trace of kernel events or an analysis of one, not a result; use: \
         rtproof explain {name}"
    )]
    Trace { name: String },
    /// There is no such format.
    #[error("\"{requested}\" is not a format; choose one of {known}")]
    UnknownFormat {
        requested: String,
        /// Ids of the known formats.
        known: String,
    },
    /// A line is not what it should be.
    #[error("{name}, line {line}: {what}")]
    Line {
        name: String,
        /// Line, from 1 on.
        line: u64,
        /// The text found and what was expected.
        what: String,
    },
    /// A byte is not what it should be.
    #[error("{name}, byte {offset}: {what}")]
    Byte {
        name: String,
        /// Offset, from 0 on.
        offset: u64,
        /// The text found and what was expected.
        what: String,
    },
}

// Results as people hand them on: quoted in a mail, indented, saved in UTF-16.

/// The text as its tool wrote it; `None`: it is no text, or unchanged.
fn unpasted(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = decoded(bytes)?;
    let mut lines: Vec<&str> = text.lines().collect();
    let filled = |lines: &[&str]| lines.iter().filter(|line| !line.trim().is_empty()).count();
    // A mail quotes each line, each time that it is answered.
    while filled(&lines) > 0
        && lines.iter().all(|line| line.trim().is_empty() || line.trim_start().starts_with('>'))
    {
        for line in &mut lines {
            let rest = line.trim_start();
            let rest = rest.strip_prefix('>').unwrap_or(rest);
            *line = rest.strip_prefix(' ').unwrap_or(rest);
        }
    }
    let indent = |line: &&str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let common = lines.iter().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    let mut out = String::with_capacity(text.len());
    for line in lines {
        out.push_str(line.get(common..).unwrap_or("").trim_end_matches('\r'));
        out.push('\n');
    }
    if !text.ends_with('\n') {
        out.pop();
    }
    (out.as_bytes() != bytes).then(|| out.into_bytes())
}

fn decoded(bytes: &[u8]) -> Option<String> {
    let units = |unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> =
            bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
        String::from_utf16(&units).ok()
    };
    match bytes {
        [0xff, 0xfe, ..] => units(u16::from_le_bytes),
        [0xfe, 0xff, ..] => units(u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8(rest.to_vec()).ok(),
        _ => String::from_utf8(bytes.to_vec()).ok(),
    }
}

// A record of what was imported. What a record of ours says and the file does not stays unknown:
// facts of the machine, options, cost.

/// Writes a record of `imported`, ready to be judged and sealed. `tool_version`, `command`: of
/// rtproof itself.
///
/// # Errors
/// As [`Writer::create`].
pub fn store(
    path: &Path,
    imported: &Imported,
    tool_version: &str,
    command: &[String],
) -> Result<Finished, WriteError> {
    let head = head(imported, tool_version, command);
    let mut writer = Writer::create(path, &head)?;
    writer.import(imported)?;
    let (threads, ended) = (Vec::new(), RunEnd::Complete);
    writer.finish(&RunTail { ended, facts: None, threads, options: None })
}

fn head(imported: &Imported, tool_version: &str, command: &[String]) -> RunHead {
    let started_s = u64::try_from(imported.started_s.unwrap_or(0)).unwrap_or(0);
    let cpus: Vec<u32> = imported.threads.iter().filter_map(|thread| thread.cpu).collect();
    RunHead {
        meta: Meta {
            // The same file has the same identity, whoever imports it.
            run_id: imported.digest.chars().take(32).collect(),
            tool_version: tool_version.into(),
            command: command.to_vec(),
            started_realtime_ns: started_s.saturating_mul(1_000_000_000).min(i64::MAX as u64),
            started_monotonic_ns: 0,
            ended: None,
        },
        options: options(imported, CpuList::new(cpus)),
        facts: Snapshot {
            facts: Facts::read(&Root::captured(Capture::of_files([]))),
            rows: Vec::new(),
            condition_id: None,
        },
        cost: Cost {
            clock_read_ps: 0,
            clock_step_ns: 0,
            clock_getres_ns: 0,
            record_ps: 0,
            floor_ns: 0,
        },
    }
}

/// The options of another tool are unknown: zeros, and no requirement.
fn options(imported: &Imported, cpus: CpuList) -> Options {
    let none = || CpuList::new([]);
    Options {
        cpus,
        housekeeping: none(),
        load_cpus: none(),
        policy: Policy::Other,
        priority: 0,
        period_ns: imported.period_ns.unwrap_or(0),
        duration_ns: imported.duration_ns.unwrap_or(0),
        start: Start::Aligned,
        clock: rtproof_model::run::Clock::Monotonic,
        dma_latency_us: None,
        phases: Vec::new(),
        requirement: Requirement {
            budget_ns: None,
            class: BudgetClass::Soft,
            confidence_ppm: 950_000,
            rate_per_1000h: 0,
            episode_ns: None,
        },
        profile: String::new(),
        skipped: BTreeMap::new(),
        spike_ns: None,
        trace: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_mails_and_editors_add_is_taken_off() {
        let plain =
            |text: &[u8]| unpasted(text).map(|bytes| String::from_utf8(bytes).expect("text"));
        assert_eq!(plain(b"> > a 1\r\n> > \n> >   b\n"), Some("a 1\n\n  b\n".into()));
        assert_eq!(plain(b"    a\n      b\n"), Some("a\n  b\n".into()));
        assert_eq!(plain(b"\xef\xbb\xbfa\n"), Some("a\n".into()));
        assert_eq!(plain(b"\xff\xfea\0\n\0"), Some("a\n".into()));
        // The end stays as it was, and so does what needs nothing.
        assert_eq!(plain(b"> a"), Some("a".into()));
        assert_eq!(plain(b"a\n > b\n"), None);
        assert_eq!(plain(b"\xff\xff"), None);
    }
}
