//! Files on their way out of a guest: lines of base64 on its console, the one way that every kernel
//! with a serial console has. What comes back is checked: a guest is not trusted with paths here.

use std::io::{Read, Write};

use anyhow::{Context, Result, bail, ensure};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Bytes of one line.
const LINE: usize = 57;
/// What all files together may be, unpacked.
const MAX: u64 = 1 << 30;

/// A file: name without a folder, content.
pub type Named = (String, Vec<u8>);

/// The lines that carry these files.
///
/// # Errors
/// None is expected: it is written to memory.
pub fn pack(files: &[Named]) -> Result<Vec<String>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    for (name, content) in files {
        writeln!(packed, "{} {name}", content.len())?;
        packed.write_all(content)?;
    }
    let packed = packed.finish()?;
    Ok(packed.chunks(LINE).map(encoded).collect())
}

/// The files of these lines.
///
/// # Errors
/// A line is damaged or missing, or a name would leave the folder.
pub fn unpack(lines: &[String]) -> Result<Vec<Named>> {
    let mut packed = Vec::new();
    for line in lines {
        packed.extend(decoded(line).with_context(|| format!("not base64: {line:?}"))?);
    }
    let mut bytes = Vec::new();
    let read = GzDecoder::new(&packed[..]).take(MAX + 1).read_to_end(&mut bytes);
    read.context("what came over the console is damaged")?;
    ensure!(bytes.len() as u64 <= MAX, "the guest sent more than {MAX} bytes");
    let mut rest = &bytes[..];
    let mut files = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'\n').context("a name is cut off")?;
        let head = std::str::from_utf8(&rest[..end]).context("a name is not text")?;
        let (size, name) = head.split_once(' ').with_context(|| format!("no name: {head:?}"))?;
        let size: usize = size.parse().with_context(|| format!("no size: {head:?}"))?;
        if !is_plain(name) {
            bail!("the guest names a file {name:?}, which is not taken");
        }
        rest = &rest[end + 1..];
        let content = rest.get(..size).with_context(|| format!("{name}: cut off"))?;
        files.push((name.to_owned(), content.to_vec()));
        rest = &rest[size..];
    }
    Ok(files)
}

/// Whether a name stays in its folder and hides nothing.
pub fn is_plain(name: &str) -> bool {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    !name.is_empty()
        && name.len() < 200
        && !name.starts_with(['.', '-'])
        && name.chars().all(is_fine)
}

fn encoded(bytes: &[u8]) -> String {
    let mut line = String::with_capacity(LINE.div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let index = (word >> (18 - 6 * at) & 63) as usize;
            line.push(if at <= three.len() { ALPHABET[index].into() } else { '=' });
        }
    }
    line
}

fn decoded(line: &str) -> Option<Vec<u8>> {
    let text = line.trim_end_matches('=').as_bytes();
    if text.len() % 4 == 1 || !line.len().is_multiple_of(4) || line.len() - text.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(line.len() / 4 * 3);
    for four in text.chunks(4) {
        let mut word = 0_u32;
        for at in 0..4 {
            let value = four.get(at).map_or(Some(0), |c| ALPHABET.iter().position(|a| a == c))?;
            word = word << 6 | u32::try_from(value).ok()?;
        }
        bytes.extend(&word.to_be_bytes()[1..four.len()]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Vec<Named> {
        let noise: Vec<u8> = (0..5000_u32).map(|i| (i * i % 251) as u8).collect();
        vec![("prove.rtproof".into(), noise), ("empty.err".into(), vec![])]
    }

    #[test]
    fn files_come_out_as_they_went_in() {
        let lines = pack(&files()).unwrap();
        assert!(lines.len() > 2 && lines.iter().all(|line| line.len() <= 76));
        assert_eq!(unpack(&lines).unwrap(), files());
        assert_eq!(encoded(b"any carnal pleas"), "YW55IGNhcm5hbCBwbGVhcw==");
        assert_eq!(decoded("YW55IGNhcm5hbCBwbGVhcw==").unwrap(), b"any carnal pleas");
    }

    #[test]
    fn damage_is_an_error_and_never_a_shorter_file() {
        let lines = pack(&files()).unwrap();
        for at in 0..lines.len() {
            let mut cut = lines.clone();
            cut.remove(at);
            assert!(unpack(&cut).is_err(), "line {at}");
            let mut odd = lines.clone();
            odd[at] = "[    2.0] BUG: scheduling while atomic".into();
            assert!(unpack(&odd).is_err(), "line {at}");
        }
        assert!(unpack(&[]).is_err());
    }

    #[test]
    fn a_guest_writes_nowhere_else() {
        for name in ["../x", "/etc/passwd", "a/b", ".hidden", "", "a b", "x\u{1b}"] {
            let lines = pack(&[(name.into(), b"x".to_vec())]).unwrap();
            assert!(unpack(&lines).is_err(), "{name:?}");
        }
    }
}
