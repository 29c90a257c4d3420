//! Our lines in a file that others write too: between two marks, so that they can be found,
//! replaced and taken out again with every other byte untouched.

use std::ops::Range;

use super::{
    error::BootError,
    view::{self, View},
};
use crate::change::Change;

/// First line of what is ours.
const BEGIN: &str = "# rtproof begin";
/// On the first line when the line before it had no end and got one.
const NO_NEWLINE: &str = " (the line before had no end)";
/// Last line of what is ours.
const END: &str = "# rtproof end";

/// Where our lines are, marks included.
///
/// # Errors
/// One mark without the other, or two of one.
pub(super) fn find(path: &str, text: &[u8]) -> Result<Option<Range<usize>>, BootError> {
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
    let Some(range) = find(path, text)? else { return Ok(None) };
    let block = &text[range];
    let start = block.iter().position(|&byte| byte == b'\n').map_or(block.len(), |at| at + 1);
    let mut end = block.strip_suffix(b"\n").unwrap_or(block).len();
    end = block[..end].iter().rposition(|&byte| byte == b'\n').map_or(start, |at| at + 1);
    Ok(Some(&block[start..end.max(start)]))
}

/// The file without our lines: what it was before.
pub(super) fn without(path: &str, text: &[u8]) -> Result<Vec<u8>, BootError> {
    let Some(range) = find(path, text)? else { return Ok(text.to_vec()) };
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
pub(super) fn with(path: &str, text: &[u8], lines: &str) -> Result<Vec<u8>, BootError> {
    let found = find(path, text)?;
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
pub(super) fn put(view: &View<'_>, path: &str, lines: &str) -> Result<Change, BootError> {
    let text = view.bytes(path)?.unwrap_or_default();
    Ok(view::file(path, with(path, &text, lines)?))
}

/// The change that removes the marks and what is between them; `None` without marks.
pub(super) fn removal(view: &View<'_>, path: &str) -> Result<Option<Change>, BootError> {
    let text = view.bytes(path)?.unwrap_or_default();
    let is_there = find(path, &text)?.is_some();
    is_there.then(|| Ok(view::file(path, without(path, &text)?))).transpose()
}

/// Whether a file has lines of ours.
pub(super) fn is_in(view: &View<'_>, path: &str) -> Result<bool, BootError> {
    Ok(find(path, &view.bytes(path)?.unwrap_or_default())?.is_some())
}

/// The lines between the marks of a file, with plain ends.
pub(super) fn ours(view: &View<'_>, path: &str) -> Result<String, BootError> {
    let text = view.bytes(path)?.unwrap_or_default();
    let lines = inner(path, &text)?.unwrap_or_default();
    Ok(String::from_utf8_lossy(lines).replace("\r\n", "\n"))
}

/// The text of a file without our lines.
pub(super) fn others(view: &View<'_>, path: &str) -> Result<String, BootError> {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn others_keep_every_byte() {
        let others =
            [&b""[..], b"\n", b"a", b"a\n", b"a\r\nb\r\n", b"a\r\nb", b"\xff\xfe\n\n", b"\n\nx"];
        for text in others {
            let one = with("f", text, "x\ny\n").unwrap();
            let two = with("f", &one, "z\n").unwrap();
            assert_eq!(without("f", &one).unwrap(), text, "{text:?}");
            assert_eq!(without("f", &two).unwrap(), text, "{text:?}");
            let end = line_end(text);
            assert_eq!(inner("f", &two).unwrap().unwrap(), format!("z{end}").as_bytes());
            assert_eq!(with("f", &two, "z\n").unwrap(), two);
        }
        assert_eq!(without("f", b"a\nb").unwrap(), b"a\nb");
        assert_eq!(inner("f", b"a").unwrap(), None);
        assert_eq!(inner("f", b"# rtproof begin\n# rtproof end").unwrap(), Some(&b""[..]));
    }

    #[test]
    fn lines_added_after_ours_stay() {
        let mut text = with("f", b"a", "x\n").unwrap();
        text.extend_from_slice(b"later\n");
        assert_eq!(without("f", &text).unwrap(), b"a\nlater\n".to_vec());
        let mut text = with("f", b"a\n", "x\n").unwrap();
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
            let error = find("/boot/grub/custom.cfg", text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("/boot/grub/custom.cfg:2"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(text in prop::collection::vec(any::<u8>(), 0..60)) {
            let made = with("f", &text, "one\n").unwrap();
            prop_assert_eq!(without("f", &made).unwrap(), text);
        }
    }
}
