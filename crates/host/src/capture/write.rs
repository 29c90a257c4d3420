//! A capture as text: one form for one content, sorted, so that two captures can be compared.

use super::{
    escape::{escape, is_plain},
    form::{Capture, Entry, FIRST_LINE, LAST_LINE, Origin},
};

impl Capture {
    /// The file.
    #[must_use]
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
    let mut head = |kind: &str| text.push_str(&format!("== {name} {kind}\n"));
    match entry {
        Entry::File(bytes) => match std::str::from_utf8(bytes) {
            Ok(plain) if is_plain(plain) => {
                head("file");
                put_lines(text, plain.split('\n'), str::to_owned);
            }
            _ => {
                head("escaped");
                put_lines(text, bytes.split(|byte| *byte == b'\n'), escape);
            }
        },
        Entry::Lines(lines) => {
            head("lines");
            put_lines(text, lines.split('\n'), str::to_owned);
        }
        Entry::Gzip(inside) => {
            head("gzip");
            put_lines(text, inside.split('\n'), str::to_owned);
        }
        Entry::Folder(names) => {
            head("folder");
            for name in names {
                put_line(text, name);
            }
        }
        Entry::Link(target) => {
            head("link");
            put_line(text, target);
        }
        Entry::Call(answer) => {
            head("call");
            put_line(text, answer);
        }
        Entry::Failed(why) => {
            head("failed");
            put_line(text, why);
        }
        Entry::Denied(number) => {
            head("denied");
            put_line(text, &super::parse::errno_name(*number));
        }
        Entry::There => head("there"),
        Entry::Absent => head("absent"),
        Entry::Redacted => head("redacted"),
    }
}

fn put_line(text: &mut String, line: &str) {
    text.push_str(&format!("|{}\n", escape(line.as_bytes())));
}

/// A line that the file ends without `\n` begins with `:`.
fn put_lines<T: Default + PartialEq + Copy>(
    text: &mut String,
    lines: impl Iterator<Item = T>,
    show: impl Fn(T) -> String,
) {
    let mut lines = lines.peekable();
    while let Some(line) = lines.next() {
        match lines.peek() {
            Some(_) => text.push_str(&format!("|{}\n", show(line))),
            // After the last `\n`.
            None if line == T::default() => {}
            None => text.push_str(&format!(":{}\n", show(line))),
        }
    }
}
