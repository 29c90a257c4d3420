//! The lines that a worker writes to its stdout: `KIND<tab>VALUE`. Text, so that a worker can be
//! run by hand; one line in one write, so that none is torn.

use std::io::Write;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// What the load does, in words. Written when it is running.
    Detail(String),
    /// Unit of the work from now on.
    Unit(String),
    /// Work so far. Written once a second.
    Work(u64),
    /// What went wrong. Nothing but `Done` follows.
    Error(String),
    /// Work in all. The last line.
    Done(u64),
}

impl Message {
    /// Writes the line to stdout. A missing reader is no error: then the pipe at stdin
    /// is closed too, and ends the worker.
    pub(super) fn send(&self) {
        let _ = std::io::stdout().lock().write_all(self.to_string().as_bytes());
    }

    /// Reads a line without its end; `None`: not one of ours.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (kind, value) = line.split_once('\t')?;
        Some(match kind {
            "detail" => Self::Detail(unescape(value)),
            "unit" => Self::Unit(unescape(value)),
            "work" => Self::Work(value.parse().ok()?),
            "error" => Self::Error(unescape(value)),
            "done" => Self::Done(value.parse().ok()?),
            _ => return None,
        })
    }
}

impl std::fmt::Display for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Detail(text) => writeln!(f, "detail\t{}", escape(text)),
            Self::Unit(text) => writeln!(f, "unit\t{}", escape(text)),
            Self::Work(work) => writeln!(f, "work\t{work}"),
            Self::Error(text) => writeln!(f, "error\t{}", escape(text)),
            Self::Done(work) => writeln!(f, "done\t{work}"),
        }
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some(other) => out.push(other),
                None => {}
            },
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_as_they_went() {
        for message in [
            Message::Detail("O_DIRECT, 64 MiB\tin /tmp".into()),
            Message::Unit("bytes".into()),
            Message::Work(0),
            Message::Error("two\nlines \\n and \\ more".into()),
            Message::Done(u64::MAX),
        ] {
            let line = message.to_string();
            let (line, rest) = line.split_once('\n').unwrap();
            assert_eq!(rest, "");
            assert_eq!(Message::parse(line), Some(message));
        }
    }

    #[test]
    fn foreign_lines_are_passed_over() {
        for line in ["", "work", "work\t", "work\t-1", "hello\tworld"] {
            assert_eq!(Message::parse(line), None, "{line:?}");
        }
    }
}
