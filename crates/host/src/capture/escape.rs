//! Bytes as one line of text and back: `\\` for a backslash, `\xNN` for what is no text.

use std::fmt::Write;

/// Whether text needs no escapes: whatever an editor shows and keeps.
pub(super) fn is_plain(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() && c != '\n' && c != '\t')
}

/// One line of plain text.
pub(crate) fn escape(bytes: &[u8]) -> String {
    let mut line = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => line.push_str("\\\\"),
                '\t' => line.push(c),
                _ if c.is_control() => {
                    let mut buffer = [0; 4];
                    put_hex(&mut line, c.encode_utf8(&mut buffer).as_bytes());
                }
                _ => line.push(c),
            }
        }
        put_hex(&mut line, chunk.invalid());
    }
    line
}

fn put_hex(line: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(line, "\\x{byte:02X}");
    }
}

/// The bytes behind a line; `None` where a backslash begins neither escape.
pub(super) fn unescape(line: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(line.len());
    let mut rest = line.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest {
            [b'\\', after @ ..] => {
                bytes.push(b'\\');
                rest = after;
            }
            [b'x', high, low, after @ ..] => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                let value = digit(high)? << 4 | digit(low)?;
                bytes.push(u8::try_from(value).ok()?);
                rest = after;
            }
            _ => return None,
        }
    }
    Some(bytes)
}

/// [`unescape`], where text must come out.
pub(super) fn unescape_text(line: &str) -> Option<String> {
    String::from_utf8(unescape(line)?).ok()
}
