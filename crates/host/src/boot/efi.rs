//! Variables of UEFI as efivarfs shows them, our lines in the text files of a boot loader, and the
//! texts of a unified kernel image.

use std::{fs::File, ops::Range, os::unix::fs::FileExt};

use super::{BootError, BootView, known_or_error};
use crate::Root;
use crate::change::Change;

/// Where efivarfs is mounted.
const FOLDER: &str = "/sys/firmware/efi/efivars";

/// Vendor of the variables between a boot loader and the system (systemd's boot loader interface).
const LOADER: &str = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";

/// Vendor of the firmware's own variables (UEFI specification, 3.3).
const GLOBAL: &str = "8be4df61-93ca-11d2-aa0d-00e098032b8c";

/// Bytes of attributes before the value.
const ATTRIBUTES: usize = 4;

/// UEFI, if there is one.
#[derive(Clone, Debug, Default)]
pub(super) struct Firmware {
    /// Whether the machine was booted by UEFI.
    pub is_uefi: bool,
    /// Whether it checks signatures.
    pub secure_boot: Option<bool>,
    /// Loader that reports having started us: `systemd-boot 257`, `GRUB 2.12`.
    pub loader: Option<String>,
    /// Stub that reports being in the kernel's image: `systemd-stub 257`.
    pub stub: Option<String>,
    /// What that boot loader can do, as bits.
    pub features: Option<u64>,
    /// Default entry that was chosen in the firmware's memory.
    pub entry_default: Option<String>,
    /// Entry for the next boot alone.
    pub entry_one_shot: Option<String>,
}

/// Name of a variable of the boot loader as efivarfs has it.
pub(super) fn name(variable: &str) -> String {
    format!("{variable}-{LOADER}")
}

impl Firmware {
    pub(super) fn read(root: &Root) -> Self {
        let text = |variable: &str| utf16(&value(root, &name(variable))?);
        Self {
            is_uefi: root.exists("/sys/firmware/efi"),
            secure_boot: value(root, &format!("SecureBoot-{GLOBAL}"))
                .and_then(|bytes| bytes.first().map(|&byte| byte == 1)),
            loader: text("LoaderInfo"),
            stub: text("StubInfo"),
            features: value(root, &name("LoaderFeatures"))
                .and_then(|bytes| Some(u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?))),
            entry_default: text("LoaderEntryDefault").filter(|id| !id.is_empty()),
            entry_one_shot: text("LoaderEntryOneShot").filter(|id| !id.is_empty()),
        }
    }
}

/// The value of a variable without its attributes.
fn value(root: &Root, name: &str) -> Option<Vec<u8>> {
    let bytes = root.read_bytes(&format!("{FOLDER}/{name}"));
    bytes.value()?.get(ATTRIBUTES..).map(<[u8]>::to_vec)
}

/// Text of UTF-16 up to its NUL.
fn utf16(bytes: &[u8]) -> Option<String> {
    let units = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let units: Vec<u16> = units.take_while(|&unit| unit != 0).collect();
    String::from_utf16(&units).ok()
}

// Our lines in a file that others write too: between two marks, so that they can be found,
// replaced and taken out again with every other byte untouched.

/// First line of what is ours.
const BEGIN: &str = "# rtproof begin";

/// On the first line if a missing line end was added before it.
const NO_NEWLINE: &str = " (the line before had no end)";

/// Last line of what is ours.
const END: &str = "# rtproof end";

/// Where our lines are, marks included.
///
/// # Errors
/// One mark without the other, or two of one.
pub(super) fn find_block(path: &str, text: &[u8]) -> Result<Option<Range<usize>>, BootError> {
    let mut begin: Option<(usize, usize)> = None;
    let mut found: Option<Range<usize>> = None;
    let mut at = 0;
    for (index, line) in text.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let wrong = |what: &str| {
            let next = "repair it by hand: our lines stand between \"# rtproof begin\" and \
                        \"# rtproof end\"";
            Err(BootError::Text { path: path.into(), line: index + 1, what: what.into(), next })
        };
        if line.starts_with(BEGIN.as_bytes()) {
            if begin.is_some() || found.is_some() {
                return wrong("a second begin of rtproof's lines");
            }
            begin = Some((at, index + 1));
        } else if line.starts_with(END.as_bytes()) {
            match begin.take() {
                Some((start, _)) => found = Some(start..at + line.len()),
                None => return wrong("an end of rtproof's lines without their begin"),
            }
        }
        at += line.len();
    }
    match begin {
        Some((_, line)) => Err(BootError::Text {
            path: path.into(),
            line,
            what: "rtproof's lines have no end".into(),
            next: "repair it by hand: add the line \"# rtproof end\"",
        }),
        None => Ok(found),
    }
}

/// The lines between the marks.
fn inner<'a>(path: &str, text: &'a [u8]) -> Result<Option<&'a [u8]>, BootError> {
    let Some(range) = find_block(path, text)? else { return Ok(None) };
    let block = &text[range];
    let start = block.iter().position(|&byte| byte == b'\n').map_or(block.len(), |at| at + 1);
    let mut end = block.strip_suffix(b"\n").unwrap_or(block).len();
    end = block[..end].iter().rposition(|&byte| byte == b'\n').map_or(start, |at| at + 1);
    Ok(Some(&block[start..end.max(start)]))
}

/// The file without our lines: what it was before.
pub(super) fn without(path: &str, text: &[u8]) -> Result<Vec<u8>, BootError> {
    let Some(range) = find_block(path, text)? else { return Ok(text.to_vec()) };
    let is_open = text[range.start..].starts_with(format!("{BEGIN}{NO_NEWLINE}").as_bytes());
    let mut kept = text[..range.start].to_vec();
    // What another program added since must not be glued to that line.
    if is_open && range.end == text.len() {
        // The begin has the same end: of its own it has no carriage return.
        let end = line_end(&text[range.clone()]);
        kept.truncate(kept.len().saturating_sub(end.len()));
    }
    kept.extend_from_slice(&text[range.end..]);
    Ok(kept)
}

/// The file with `lines` (each with its end) as ours: in the place of earlier ones, else last.
pub(super) fn with_block(path: &str, text: &[u8], lines: &str) -> Result<Vec<u8>, BootError> {
    let found = find_block(path, text)?;
    let end = line_end(found.clone().map_or(text, |range| &text[range]));
    let lines = lines.replace('\n', end);
    let at = found.clone().unwrap_or(text.len()..text.len());
    let mut made = text[..at.start].to_vec();
    let was_open = found.is_none() && !made.is_empty() && !made.ends_with(b"\n");
    let is_open = was_open
        || found.is_some_and(|range| {
            text[range.start..].starts_with(format!("{BEGIN}{NO_NEWLINE}").as_bytes())
        });
    if was_open {
        made.extend_from_slice(end.as_bytes());
    }
    let note = if is_open { NO_NEWLINE } else { "" };
    made.extend_from_slice(format!("{BEGIN}{note}{end}{lines}{END}{end}").as_bytes());
    made.extend_from_slice(&text[at.end..]);
    Ok(made)
}

/// The change that puts lines between the marks of a file, instead of those that are there.
pub(super) fn with_lines(
    view: &BootView<'_>,
    path: &str,
    lines: &str,
) -> Result<Change, BootError> {
    let text = view.bytes(path)?.unwrap_or_default();
    Ok(super::file_change(path, with_block(path, &text, lines)?))
}

/// The change that removes the marks and what is between them; `None` without marks.
pub(super) fn removal(view: &BootView<'_>, path: &str) -> Result<Option<Change>, BootError> {
    let text = view.bytes(path)?.unwrap_or_default();
    let is_there = find_block(path, &text)?.is_some();
    is_there.then(|| Ok(super::file_change(path, without(path, &text)?))).transpose()
}

/// Whether a file has lines of ours.
pub(super) fn is_in(view: &BootView<'_>, path: &str) -> Result<bool, BootError> {
    Ok(find_block(path, &view.bytes(path)?.unwrap_or_default())?.is_some())
}

/// The lines between the marks of a file, with plain ends.
pub(super) fn lines_between_marks(view: &BootView<'_>, path: &str) -> Result<String, BootError> {
    let text = view.bytes(path)?.unwrap_or_default();
    let lines = inner(path, &text)?.unwrap_or_default();
    Ok(String::from_utf8_lossy(lines).replace("\r\n", "\n"))
}

/// The text of a file without our lines.
pub(super) fn lines_outside_marks(view: &BootView<'_>, path: &str) -> Result<String, BootError> {
    let text = without(path, &view.bytes(path)?.unwrap_or_default())?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// How the lines of a file end.
pub(super) fn line_end(text: &[u8]) -> &'static str {
    match text.iter().position(|&byte| byte == b'\n') {
        Some(at) if at > 0 && text[at - 1] == b'\r' => "\r\n",
        _ => "\n",
    }
}

// Sections of an EFI program, as far as a unified kernel image has its texts in them
// (UAPI.5: `.cmdline`, `.osrel`, `.uname`).

/// Part of the file that is read: PE headers and section table.
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
pub(super) fn read_unified_image(
    view: &BootView<'_>,
    path: &str,
) -> Result<Option<Texts>, BootError> {
    let Some(file) = known_or_error(view.root().open(path))? else { return Ok(None) };
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
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn variables_of_a_machine() {
        let text: String =
            "\u{6}\0\0\0".chars().chain("GRUB".chars().flat_map(|c| [c, '\0'])).collect();
        let tree = Tree::new(&[
            (&format!("{FOLDER}/SecureBoot-{GLOBAL}")[1..], "\u{6}\0\0\0\u{1}"),
            (&format!("{FOLDER}/{}", name("LoaderInfo"))[1..], &format!("{text}\0\0")),
            (&format!("{FOLDER}/{}", name("LoaderFeatures"))[1..], "\0\0\0\0\u{8}\0\0\0\0\0\0\0"),
            (&format!("{FOLDER}/{}", name("LoaderEntryDefault"))[1..], "\0\0\0\0\0\0"),
        ]);
        let firmware = Firmware::read(&tree.root());
        assert!(firmware.is_uefi && firmware.secure_boot == Some(true));
        assert_eq!(firmware.loader.as_deref(), Some("GRUB"));
        assert_eq!(firmware.features, Some(8));
        assert_eq!(firmware.entry_default, None);
        let none = Firmware::read(&Tree::new(&[]).root());
        assert!(!none.is_uefi && none.secure_boot.is_none());
    }
}

#[cfg(test)]
mod block_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn others_keep_every_byte() {
        let others =
            [&b""[..], b"\n", b"a", b"a\n", b"a\r\nb\r\n", b"a\r\nb", b"\xff\xfe\n\n", b"\n\nx"];
        for text in others {
            let one = with_block("f", text, "x\ny\n").unwrap();
            let two = with_block("f", &one, "z\n").unwrap();
            assert_eq!(without("f", &one).unwrap(), text, "{text:?}");
            assert_eq!(without("f", &two).unwrap(), text, "{text:?}");
            let end = line_end(text);
            assert_eq!(inner("f", &two).unwrap().unwrap(), format!("z{end}").as_bytes());
            assert_eq!(with_block("f", &two, "z\n").unwrap(), two);
        }
        assert_eq!(without("f", b"a\nb").unwrap(), b"a\nb");
        assert_eq!(inner("f", b"a").unwrap(), None);
        assert_eq!(inner("f", b"# rtproof begin\n# rtproof end").unwrap(), Some(&b""[..]));
    }

    #[test]
    fn lines_added_after_ours_stay() {
        let mut text = with_block("f", b"a", "x\n").unwrap();
        text.extend_from_slice(b"later\n");
        assert_eq!(without("f", &text).unwrap(), b"a\nlater\n".to_vec());
        let mut text = with_block("f", b"a\n", "x\n").unwrap();
        text.extend_from_slice(b"later");
        assert_eq!(without("f", &text).unwrap(), b"a\nlater");
    }

    #[test]
    fn half_marks_are_an_error_with_the_line() {
        for text in [
            "x\n# rtproof begin\nx\n",
            "x\n# rtproof end\n",
            "# rtproof begin\n# rtproof begin\n# rtproof end\n",
        ] {
            let error =
                find_block("/boot/grub/custom.cfg", text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("/boot/grub/custom.cfg:2"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(text in prop::collection::vec(any::<u8>(), 0..60)) {
            let made = with_block("f", &text, "one\n").unwrap();
            prop_assert_eq!(without("f", &made).unwrap(), text);
        }
    }
}

#[cfg(test)]
mod pe_tests {
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
