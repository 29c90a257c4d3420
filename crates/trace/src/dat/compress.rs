//! What version 7 compresses: sections whole, trace data in chunks.

use std::io::Read;

use super::error::DatError;

/// The largest window of a frame: what unpacking may keep of what it has unpacked. trace-cmd writes
/// frames of known size, whose window is at most that; its largest is the list of symbols.
const WINDOW_MAX: u64 = 16 << 20;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// As zlib does it.
    Zlib,
    /// As zstd does it.
    Zstd,
}

impl Compression {
    /// By the name in the file, which is at `at`.
    pub(super) fn named(name: &str, at: u64) -> Result<Self, DatError> {
        match name {
            "none" => Ok(Self::None),
            "zlib" => Ok(Self::Zlib),
            "zstd" => Ok(Self::Zstd),
            _ => Err(DatError::Bad {
                at,
                found: format!("compression \"{}\"", name.escape_default()),
                expected: "none, zlib or zstd",
                next: "Convert it: trace-cmd convert --compression none -i IN -o OUT",
            }),
        }
    }

    /// The unpacked bytes of a stretch that begins at `at`.
    pub(super) fn unpack<'a>(
        self,
        packed: impl Read + 'a,
        at: u64,
    ) -> Result<Box<dyn Read + 'a>, DatError> {
        Ok(match self {
            Self::None => Box::new(packed),
            Self::Zlib => Box::new(flate2::read::ZlibDecoder::new(packed)),
            Self::Zstd => {
                let decoder = ruzstd::decoding::StreamingDecoder::new_with_max_window_size(
                    packed, WINDOW_MAX,
                );
                Box::new(decoder.map_err(|error| {
                    DatError::damaged(at, error.to_string(), "a zstd frame of at most 16 MiB")
                })?)
            }
        })
    }
}
