//! Sections of an EFI program, as far as a unified kernel image has its texts in them
//! (UAPI.5: `.cmdline`, `.osrel`, `.uname`).

use std::{fs::File, os::unix::fs::FileExt};

use super::view::View;
use super::{error::BootError, view::known};

/// Head of the file that is looked at: PE headers and section table.
const HEAD_BYTES: usize = 4096;
/// Bytes of one entry of the section table.
const SECTION_BYTES: usize = 40;
/// Longest text of a section that is taken.
const TEXT_BYTES_MAX: u32 = 64 << 10;

/// Texts of a unified kernel image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Texts {
    /// The command line in it.
    pub cmdline: Option<String>,
    /// os-release of the system that it starts.
    pub osrel: Option<String>,
    /// Release of its kernel.
    pub uname: Option<String>,
}

/// Reads them; `None` for a file that is no unified kernel image.
pub(super) fn read(view: &View<'_>, path: &str) -> Result<Option<Texts>, BootError> {
    let Some(file) = known(view.root().open(path))? else { return Ok(None) };
    let read = texts(|at, bytes| read_at(&file, at, bytes));
    read.map_err(|error| BootError::file(path, error.to_string()))
}

/// Fewer bytes only at the end of the file.
fn read_at(file: &File, at: u64, bytes: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Texts of what `read` gives: bytes from a place, fewer at the end.
pub(super) fn texts(
    read: impl Fn(u64, &mut [u8]) -> std::io::Result<usize>,
) -> std::io::Result<Option<Texts>> {
    let mut head = vec![0; HEAD_BYTES];
    let length = read(0, &mut head)?;
    head.truncate(length);
    let Some(table) = section_table(&head) else { return Ok(None) };
    let mut texts = Texts::default();
    let mut is_image = false;
    for section in table.chunks_exact(SECTION_BYTES) {
        let (name, fields) = section.split_at(8);
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        is_image |= name == b".linux";
        let slot = match name {
            b".cmdline" => &mut texts.cmdline,
            b".osrel" => &mut texts.osrel,
            b".uname" => &mut texts.uname,
            _ => continue,
        };
        // A second profile of the image repeats them: the first is what boots.
        if slot.is_some() {
            continue;
        }
        let field =
            |at| fields.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
        let (Some(virtual_size), Some(size), Some(at)) = (field(0), field(8), field(12)) else {
            continue;
        };
        let size = size.min(virtual_size).min(TEXT_BYTES_MAX);
        let mut bytes = vec![0; size as usize];
        let length = read(u64::from(at), &mut bytes)?;
        bytes.truncate(length);
        let text = String::from_utf8_lossy(&bytes);
        *slot = Some(text.trim_end_matches(['\0', '\n', ' ']).to_owned());
    }
    Ok(is_image.then_some(texts))
}

/// The section table of a PE file (Microsoft's PE format, "Section Table").
fn section_table(head: &[u8]) -> Option<&[u8]> {
    let number = |at: usize, length: usize| {
        let bytes = head.get(at..at.checked_add(length)?)?;
        Some(bytes.iter().rev().fold(0_usize, |number, &byte| number << 8 | usize::from(byte)))
    };
    let pe = number(0x3c, 4)?;
    let is_pe = head.starts_with(b"MZ") && head.get(pe..pe.checked_add(4)?)? == b"PE\0\0";
    let sections = number(pe + 6, 2)?;
    let start = pe + 24 + number(pe + 20, 2)?;
    let end = start + sections * SECTION_BYTES;
    is_pe.then(|| head.get(start..end.min(head.len()))).flatten()
}

/// A small image for tests: headers and sections, no program.
#[cfg(test)]
pub(super) fn image(sections: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = vec![0; 0x40];
    bytes[..2].copy_from_slice(b"MZ");
    bytes[0x3c] = 0x40;
    bytes.extend_from_slice(b"PE\0\0\x64\x86");
    bytes.extend_from_slice(&u16::try_from(sections.len()).unwrap().to_le_bytes());
    bytes.extend_from_slice(&[0; 16]);
    let mut at = u32::try_from(bytes.len() + sections.len() * SECTION_BYTES).unwrap();
    let mut data = Vec::new();
    for (name, text) in sections {
        let mut section = [0; SECTION_BYTES];
        section[..name.len()].copy_from_slice(name.as_bytes());
        let size = u32::try_from(text.len()).unwrap();
        section[8..12].copy_from_slice(&size.to_le_bytes());
        section[16..20].copy_from_slice(&size.to_le_bytes());
        section[20..24].copy_from_slice(&at.to_le_bytes());
        bytes.extend_from_slice(&section);
        data.extend_from_slice(text.as_bytes());
        at += size;
    }
    bytes.extend_from_slice(&data);
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(bytes: &[u8]) -> Option<Texts> {
        texts(|at, buffer| {
            let from = usize::try_from(at).unwrap().min(bytes.len());
            let length = buffer.len().min(bytes.len() - from);
            buffer[..length].copy_from_slice(&bytes[from..from + length]);
            Ok(length)
        })
        .unwrap()
    }

    #[test]
    fn texts_of_an_image() {
        let image =
            image(&[(".osrel", "ID=arch\n"), (".cmdline", "ro quiet\0\0"), (".linux", "x")]);
        let texts = of(&image).unwrap();
        assert_eq!(texts.cmdline.as_deref(), Some("ro quiet"));
        assert_eq!(texts.osrel.as_deref(), Some("ID=arch"));
        assert_eq!(texts.uname, None);
        assert_eq!(of(&super::image(&[(".cmdline", "x")])), None, "no kernel in it");
        assert_eq!(of(b"MZ"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(
            junk in prop::collection::vec(any::<u8>(), 0..200),
            at in 0_usize..200,
        ) {
            let mut bytes = image(&[(".cmdline", "ro"), (".linux", "")]);
            of(&junk);
            for (place, byte) in junk.iter().enumerate() {
                let place = (at + place * 7) % bytes.len();
                bytes[place] = *byte;
            }
            of(&bytes);
        }
    }
}
