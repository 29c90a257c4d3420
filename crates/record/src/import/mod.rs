//! Result files of other tools, read to the last sample: one file per format, one list.
//!
//! A format is recognised by its content, never by its name. What a file does not say stays
//! unknown, what may mislead is a [`Doubt`]; a file that is cut off or holds anything unexpected is
//! an error with the line or the byte, never a shorter result.

mod command;
mod counter;
mod cyclictest;
mod draft;
mod format;
mod hdr_log;
mod hwlat;
mod jitterdebugger;
mod json;
mod omission;
mod oslat;
mod pasted;
mod rtla;
mod store;
mod sysjitter;
mod text;

use std::{
    io::{self, Read},
    path::Path,
};

use sha2::{Digest, Sha256};

use crate::file;

use self::draft::remark;
pub use self::{
    draft::DOUBTS,
    format::{BYTES_MAX, Hints, ImportError, Importer},
    store::store,
};
pub use crate::imported::{
    BINS_MAX, Doubt, Imported, ImportedThread, Kind, Omitted, THREADS_MAX, ToolValue,
};

/// All formats; the first that detects its format in a file reads it.
pub const FORMATS: &[Importer] = &[
    jitterdebugger::raw::RAW,
    jitterdebugger::json::JSON,
    oslat::OSLAT_JSON,
    cyclictest::json::JSON,
    rtla::hist::TIMERLAT,
    rtla::hist::OSNOISE,
    rtla::top::TIMERLAT,
    rtla::top::OSNOISE,
    rtla::stop::STOP,
    hdr_log::HDR_LOG,
    hwlat::TRACER,
    hwlat::DETECT,
    sysjitter::TABLE,
    sysjitter::RAW,
    oslat::OSLAT_TEXT,
    cyclictest::histogram::HISTOGRAM,
    cyclictest::rows::ROWS,
    cyclictest::summary::SUMMARY,
    cyclictest::verbose::VERBOSE,
    jitterdebugger::csv::CSV,
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
    let file = if is_input { file::standard_input() } else { file::open(path) };
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
/// If it is of no known format, or it is not as the tool writes it.
pub fn read(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let name = || hints.name.clone();
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(ImportError::Empty { name: name() });
    }
    if bytes.len() as u64 > BYTES_MAX {
        return Err(ImportError::Huge { name: name(), bytes: bytes.len() as u64 });
    }
    let found = match &hints.format {
        Some(asked) => FORMATS
            .iter()
            .find(|format| format.id == asked)
            .ok_or_else(|| ImportError::UnknownFormat { asked: asked.clone(), known: known() })?,
        None => match FORMATS.iter().find(|format| (format.detect)(bytes)) {
            Some(found) => found,
            None => return read_pasted(bytes, hints),
        },
    };
    // Where the result itself says how much it holds, a last line without an end may be whole.
    let is_counted = found.id == cyclictest::histogram::HISTOGRAM.id;
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
    let plain = pasted::plain(bytes).ok_or_else(unknown)?;
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
