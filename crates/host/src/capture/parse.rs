//! Text to capture: strict, so that a mistake in an editor is found where it was made.

use rustix::io::Errno;

use super::form::{
    CAPTURE_BYTES_MAX, Capture, CaptureEntry, CaptureError, CaptureOrigin, FIRST_LINE, LAST_LINE,
    PATH_BYTES_MAX, clean, escape, is_plain, unescape, unescape_text,
};

/// Errors by name, for people. Others are written as numbers.
const ERRNO_NAMES: &[(&str, Errno)] = &[
    ("EPERM", Errno::PERM),
    ("EIO", Errno::IO),
    ("ENXIO", Errno::NXIO),
    ("EAGAIN", Errno::AGAIN),
    ("ENOMEM", Errno::NOMEM),
    ("EACCES", Errno::ACCESS),
    ("EBUSY", Errno::BUSY),
    ("EISDIR", Errno::ISDIR),
    ("EINVAL", Errno::INVAL),
    ("EFBIG", Errno::FBIG),
    ("ELOOP", Errno::LOOP),
    ("EOPNOTSUPP", Errno::OPNOTSUPP),
];

/// Name of an error, or its number.
pub(super) fn errno_name(number: i32) -> String {
    let known = ERRNO_NAMES.iter().find(|(_, errno)| errno.raw_os_error() == number);
    known.map_or_else(|| number.to_string(), |(name, _)| (*name).to_owned())
}

fn errno_number(name: &str) -> Option<i32> {
    let known = ERRNO_NAMES.iter().find(|(known, _)| *known == name);
    let number = known.map(|(_, errno)| errno.raw_os_error()).or_else(|| name.parse().ok())?;
    (1..4096).contains(&number).then_some(number)
}

type Parsed<T> = Result<T, CaptureError>;

fn wrong<T>(line: usize, text: impl Into<String>) -> Parsed<T> {
    Err(CaptureError { line, text: text.into() })
}

/// Lines with their numbers.
struct Lines<'a> {
    rest: &'a str,
    /// Of the line last taken.
    number: usize,
}

impl<'a> Lines<'a> {
    fn peek(&self) -> Option<&'a str> {
        (!self.rest.is_empty()).then(|| self.rest.split_once('\n').map_or(self.rest, |(l, _)| l))
    }

    fn next(&mut self) -> Option<&'a str> {
        let line = self.peek()?;
        self.rest = self.rest.get(line.len() + 1..).unwrap_or_default();
        self.number += 1;
        Some(line)
    }

    /// The next line, if it begins with a mark.
    fn marked(&mut self, mark: char) -> Option<&'a str> {
        let line = self.peek()?.strip_prefix(mark)?;
        self.next();
        Some(line)
    }
}

/// The lines below a head.
struct Body<'a> {
    lines: Vec<&'a str>,
    /// Whether the last line ends without `\n`.
    is_open: bool,
    /// Line of the head.
    number: usize,
}

impl Capture {
    /// Takes a file apart.
    ///
    /// # Errors
    /// The first line that is not as it must be.
    pub fn parse(bytes: &[u8]) -> Result<Self, CaptureError> {
        if bytes.len() as u64 > CAPTURE_BYTES_MAX {
            return wrong(1, "larger than 128 MiB: not a captured machine");
        }
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let before = &bytes[..error.valid_up_to()];
                let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
                check_first(before.split(|byte| *byte == b'\n').next().unwrap_or_default())?;
                return wrong(line, "not UTF-8: write such bytes as \\xNN in an `escaped` file");
            }
        };
        let mut lines = Lines { rest: text, number: 0 };
        check_first(lines.next().unwrap_or_default().as_bytes())?;
        let second = lines.next().unwrap_or_default();
        let Some(origin) = CaptureOrigin::ALL.into_iter().find(|origin| origin.line() == second)
        else {
            let all = CaptureOrigin::ALL.map(|origin| format!("`{}`", origin.line())).join(", ");
            return wrong(2, format!("expected one of {all}"));
        };
        let mut capture = Self { origin, about: Vec::new(), entries: Default::default() };
        while let Some(comment) = lines.marked('#') {
            check_plain(lines.number, comment)?;
            capture.about.push(comment.to_owned());
        }
        loop {
            match lines.next() {
                Some(LAST_LINE) => break,
                Some(line) => capture.take_entry(line, &mut lines)?,
                None => {
                    let text = format!("cut off: the last line must be `{LAST_LINE}`");
                    return wrong(lines.number + 1, text);
                }
            }
        }
        match lines.next() {
            None if text.ends_with('\n') => Ok(capture),
            None => wrong(lines.number, "cut off: the last line has no end"),
            Some(_) => wrong(lines.number, format!("nothing may follow `{LAST_LINE}`")),
        }
    }

    fn take_entry(&mut self, head: &str, lines: &mut Lines<'_>) -> Parsed<()> {
        let number = lines.number;
        let parts = head.strip_prefix("== ").and_then(|head| head.rsplit_once(' '));
        let Some((name, kind)) = parts else {
            return wrong(number, HEAD_EXPECTED);
        };
        check_plain(number, name)?;
        let Some(name) = unescape_text(name).filter(|name| !name.is_empty()) else {
            return wrong(number, format!("not a path: {name}; a backslash is written twice"));
        };
        // What an error shows is escaped again: it goes to a terminal.
        let shown = escape(name.as_bytes());
        if name.len() > PATH_BYTES_MAX {
            return wrong(number, format!("a path of more than {PATH_BYTES_MAX} bytes"));
        }
        // A call has no path: it was answered, or refused.
        let is_refused = ["absent", "denied", "failed", "redacted"].contains(&kind);
        let is_right = match kind == "call" || (is_refused && !name.contains('/')) {
            true => !name.starts_with('/'),
            false => name.starts_with('/') && clean(&name) == name,
        };
        if !is_right {
            let text = "expected a path from / without `.`, `..` and double or final slashes";
            return wrong(number, format!("{shown}: {text}"));
        }
        if let Some((last, _)) = self.entries.last_key_value().filter(|(last, _)| **last >= name) {
            let last = escape(last.as_bytes());
            let text = format!("{shown} after {last}: entries are sorted by path, each once");
            return wrong(number, text);
        }
        let mut body = Body { lines: Vec::new(), is_open: false, number };
        while let Some(line) = lines.marked('|') {
            check_plain(lines.number, line)?;
            body.lines.push(line);
        }
        if let Some(line) = lines.marked(':') {
            check_plain(lines.number, line)?;
            body.lines.push(line);
            body.is_open = true;
        }
        let entry = body.entry(kind)?;
        self.entries.insert(name, entry);
        Ok(())
    }
}

const HEAD_EXPECTED: &str = "expected `== PATH KIND`, or below it lines that begin with `|` (the \
                             last one with `:` where the file ends without a line end)";

fn check_first(line: &[u8]) -> Parsed<()> {
    if line == FIRST_LINE.as_bytes() {
        return Ok(());
    }
    if line.starts_with(b"rtproof capture ") {
        return wrong(
            1,
            "of another version: this rtproof reads version 1, with no CR at line ends",
        );
    }
    wrong(
        1,
        format!(
            "not a captured machine, which begins with `{FIRST_LINE}`; make one with `rtproof \
             capture FILE`"
        ),
    )
}

fn check_plain(number: usize, line: &str) -> Parsed<()> {
    if is_plain(line) {
        return Ok(());
    }
    wrong(
        number,
        "a control character (a CR at the line end?): write it as \\xNN in an `escaped` file",
    )
}

impl Body<'_> {
    fn entry(&self, kind: &str) -> Parsed<CaptureEntry> {
        match kind {
            "file" => Ok(CaptureEntry::File(self.text()?.into_bytes())),
            "lines" => {
                self.check_closed()?;
                Ok(CaptureEntry::Lines(self.text()?))
            }
            "gzip" => Ok(CaptureEntry::Gzip(self.text()?)),
            "escaped" => self.escaped(),
            "folder" => self.folder(),
            "link" => match self.one()? {
                target if target.is_empty() => wrong(self.number + 1, "a link leads somewhere"),
                target if target.len() > PATH_BYTES_MAX => {
                    wrong(self.number + 1, format!("a target of more than {PATH_BYTES_MAX} bytes"))
                }
                target => Ok(CaptureEntry::Link(target)),
            },
            "call" => self.one().map(CaptureEntry::Call),
            "failed" => self.one().map(CaptureEntry::Failed),
            "denied" => match errno_number(&self.one()?) {
                Some(number) => Ok(CaptureEntry::Denied(number)),
                None => wrong(self.number + 1, "expected an error like EACCES, EPERM or a number"),
            },
            "there" => self.none(CaptureEntry::There),
            "absent" => self.none(CaptureEntry::Absent),
            "redacted" => self.none(CaptureEntry::Redacted),
            _ => wrong(
                self.number,
                format!(
                    "no such kind: {}; there are file, lines, escaped, gzip, folder, link, call, \
                     there, denied, failed, absent, redacted",
                    escape(kind.as_bytes())
                ),
            ),
        }
    }

    fn text(&self) -> Parsed<String> {
        let mut text = self.lines.join("\n");
        self.check_open()?;
        if !self.is_open && !self.lines.is_empty() {
            text.push('\n');
        }
        Ok(text)
    }

    fn escaped(&self) -> Parsed<CaptureEntry> {
        let mut bytes = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            let Some(line) = unescape(line) else {
                return wrong(self.number + 1 + at, ESCAPE_EXPECTED);
            };
            bytes.extend(line);
            bytes.push(b'\n');
        }
        if self.is_open {
            bytes.pop();
            self.check_open()?;
        }
        Ok(CaptureEntry::File(bytes))
    }

    /// `:` alone says nothing.
    fn check_open(&self) -> Parsed<()> {
        match self.lines.last() {
            Some(&"") if self.is_open => {
                wrong(self.number + self.lines.len(), "`:` needs text after it; leave the line out")
            }
            _ => Ok(()),
        }
    }

    fn folder(&self) -> Parsed<CaptureEntry> {
        self.check_closed()?;
        let mut names: Vec<String> = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            let number = self.number + 1 + at;
            let Some(name) = unescape_text(line) else {
                return wrong(number, ESCAPE_EXPECTED);
            };
            if name.is_empty() || name.contains('/') || name == "." || name == ".." {
                return wrong(number, "expected the name of a file");
            }
            if names.last().is_some_and(|last| *last >= name) {
                let name = escape(name.as_bytes());
                return wrong(number, format!("{name}: names are sorted, each once"));
            }
            names.push(name);
        }
        Ok(CaptureEntry::Folder(names))
    }

    fn one(&self) -> Parsed<String> {
        self.check_closed()?;
        let [line] = self.lines[..] else {
            return wrong(self.number, "expected one line below that begins with `|`");
        };
        match unescape_text(line) {
            Some(text) => Ok(text),
            None => wrong(self.number + 1, ESCAPE_EXPECTED),
        }
    }

    fn none(&self, entry: CaptureEntry) -> Parsed<CaptureEntry> {
        if self.lines.is_empty() {
            return Ok(entry);
        }
        wrong(self.number + 1, "expected no lines below")
    }

    fn check_closed(&self) -> Parsed<()> {
        if self.is_open {
            return wrong(self.number + self.lines.len(), "`:` is for files; begin with `|`");
        }
        Ok(())
    }
}

const ESCAPE_EXPECTED: &str = "expected text, with \\\\ for a backslash and \\xNN for a byte";
