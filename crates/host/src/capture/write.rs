//! A capture as text: one form for one content, sorted, so that two captures can be compared.

use super::{
    escape::{escape, is_plain},
    form::{Capture, Entry, FIRST_LINE, LAST_LINE, Origin},
};

impl Capture {
    pub fn to_text(&self) -> String {
        let mut text = format!("{FIRST_LINE}\n{}\n", self.origin.line());
        for line in &self.about {
            text += &format!("#{line}\n");
        }
        for (name, entry) in &self.entries {
            put(&mut text, &escape(name.as_bytes()), entry);
        }
        text + LAST_LINE + "\n"
    }
}

impl Origin {
    /// Every origin, for the parser.
    pub(super) const ALL: [Self; 3] =
        [Self::Live { by_root: true }, Self::Live { by_root: false }, Self::Folder];

    /// Second line of the file.
    pub(super) const fn line(self) -> &'static str {
        match self {
            Self::Live { by_root: true } => "from live, read by root",
            Self::Live { by_root: false } => "from live, read by a user",
            Self::Folder => "from folder",
        }
    }
}

fn put(text: &mut String, name: &str, entry: &Entry) {
    let plain = |text: &str| lines(text.split('\n'), str::to_owned);
    let (kind, body) = match entry {
        Entry::File(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if is_plain(text) => ("file", plain(text)),
            _ => ("escaped", lines(bytes.split(|byte| *byte == b'\n'), escape)),
        },
        Entry::Lines(text) => ("lines", plain(text)),
        Entry::Gzip(text) => ("gzip", plain(text)),
        Entry::Folder(names) => ("folder", names.iter().map(|name| line(name)).collect()),
        Entry::Link(target) => ("link", line(target)),
        Entry::Call(answer) => ("call", line(answer)),
        Entry::Failed(why) => ("failed", line(why)),
        Entry::Denied(number) => ("denied", line(&super::parse::errno_name(*number))),
        Entry::There => ("there", String::new()),
        Entry::Absent => ("absent", String::new()),
        Entry::Redacted => ("redacted", String::new()),
    };
    text.push_str(&format!("== {name} {kind}\n{body}"));
}

fn line(text: &str) -> String {
    format!("|{}\n", escape(text.as_bytes()))
}

/// Lines of a file: the last begins with `:` where the file ends without a line's end.
fn lines<T: Default + PartialEq + Copy>(
    lines: impl Iterator<Item = T>,
    show: impl Fn(T) -> String,
) -> String {
    let mut lines = lines.peekable();
    let mut text = String::new();
    while let Some(line) = lines.next() {
        match lines.peek() {
            Some(_) => text.push_str(&format!("|{}\n", show(line))),
            None if line == T::default() => {}
            None => text.push_str(&format!(":{}\n", show(line))),
        }
    }
    text
}
