//! Pieces of text that several readers take out.

/// The lines that begin with a key and a colon; `None` where a key has none.
pub(crate) fn excerpt(bytes: &[u8], keys: &[&str]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let key = |line: &str| line.split_once(':').map(|(key, _)| key.to_owned());
    let wanted = |line: &&str| key(line).is_some_and(|key| keys.contains(&key.as_str()));
    let lines: Vec<&str> = text.lines().filter(wanted).collect();
    let is_there = |wanted: &&str| lines.iter().any(|line| key(line).as_deref() == Some(*wanted));
    keys.iter().all(is_there).then(|| lines.iter().map(|line| format!("{line}\n")).collect())
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What follows a name and a colon in a text of such lines, as /proc/PID/status and /proc/cpuinfo
/// are.
pub(crate) fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// Words of a kernel command line: white space within double quotes parts none.
pub(crate) fn quoted_words(line: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let at_space = move |c: char| {
        quoted ^= c == '"';
        c.is_whitespace() && !quoted
    };
    line.split(at_space).filter(|word| !word.is_empty())
}

/// A word without the double quotes round it or round its value.
pub(crate) fn unquoted(word: &str) -> String {
    let bare = |text: &str| {
        let Some(inner) = text.strip_prefix('"') else { return text.to_owned() };
        inner.strip_suffix('"').unwrap_or(inner).to_owned()
    };
    match word.split_once('=') {
        _ if word.starts_with('"') => bare(word),
        Some((key, value)) => format!("{key}={}", bare(value)),
        None => word.to_owned(),
    }
}

/// The text between the first `open` and the next `close`.
pub(crate) fn between(text: &str, open: char, close: char) -> Option<&str> {
    let (_, rest) = text.split_once(open)?;
    rest.split_once(close).map(|(inner, _)| inner)
}

/// Undoes the octal escapes of a name: white space and backslash are written `\\040`.
pub(crate) fn unescape(name: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(escaped) if byte == b'\\' => {
                bytes.push(escaped);
                rest = &after[3..];
            }
            _ => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
