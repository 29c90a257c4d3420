//! Result files of other tools, read to the last sample: one file per format, one list.
//!
//! A format is recognised by its content, never by its name. What a file does not say stays
//! unknown, what may mislead is a [`Doubt`]; a file that is cut off or holds anything unexpected is
//! an error with the line or the byte, never a shorter result.

mod error;
mod store;
mod types;

use sha2::{Digest, Sha256};

pub use self::{
    error::ImportError,
    store::store,
    types::{Doubt, Hints, Imported, ImportedThread, Kind, Omitted},
};

/// Largest file that is read.
pub const BYTES_MAX: u64 = 512 << 20;
/// Most series of one file.
pub const THREADS_MAX: usize = 16_384;
/// Most cells of one series.
pub const BINS_MAX: usize = 1 << 20;

/// One format of one tool.
pub trait Importer: Sync {
    /// Name on the command line and in records.
    fn id(&self) -> &'static str;
    /// Whether these bytes are of this format, by what they begin with or hold.
    fn claims(&self, bytes: &[u8]) -> bool;
    /// Reads them.
    ///
    /// # Errors
    /// If anything in them is not as the tool writes it.
    fn read(&self, bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError>;
}

/// All formats; the first that claims a file reads it.
pub const FORMATS: &[&dyn Importer] = &[];

/// Identifiers of doubts and what they stand for.
pub const DOUBTS: &[(&str, &str)] = &[];

fn names() -> String {
    FORMATS.iter().map(|format| format.id()).collect::<Vec<_>>().join(", ")
}

/// Reads a result file.
///
/// # Errors
/// If no format claims it, or it is not as the tool writes it.
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
            .find(|format| format.id() == asked)
            .ok_or_else(|| ImportError::UnknownFormat { asked: asked.clone() })?,
        None => FORMATS
            .iter()
            .find(|format| format.claims(bytes))
            .ok_or_else(|| ImportError::Unknown { name: name(), begins: begins(bytes) })?,
    };
    let mut imported = found.read(bytes, hints)?;
    imported.source.clone_from(&hints.name);
    imported.digest = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    imported.check().map_err(|what| ImportError::Byte { name: name(), offset: 0, what })?;
    Ok(imported)
}

/// The first bytes of a file, for a message.
fn begins(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(24)]);
    format!("{:?}", text.lines().next().unwrap_or_default())
}

impl Imported {
    /// Whether counts, cells and extremes tell the same story.
    pub(crate) fn check(&self) -> Result<(), String> {
        for thread in &self.threads {
            thread.check().map_err(|what| format!("{}: {what}", thread.label))?;
        }
        Ok(())
    }
}

impl ImportedThread {
    fn check(&self) -> Result<(), String> {
        let total = self.bins.total();
        if total != self.n && !self.bins.is_empty() {
            return Err(format!("{} samples, but its cells hold {total}", self.n));
        }
        if self.overflow > self.n {
            return Err(format!("{} of {} samples without value", self.overflow, self.n));
        }
        match (self.min_ns, self.max_ns) {
            (Some(min), Some(max)) if min > max => {
                Err(format!("its smallest value {min} ns is above its largest {max} ns"))
            }
            _ => Ok(()),
        }
    }
}
