//! Results as people hand them on: quoted in a mail, indented, saved in UTF-16.

/// The text as its tool wrote it; `None`: it is no text, or is so already.
pub(super) fn plain(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = decoded(bytes)?;
    let mut lines: Vec<&str> = text.lines().collect();
    let filled = |lines: &[&str]| lines.iter().filter(|line| !line.trim().is_empty()).count();
    // A mail quotes each line, each time that it is answered.
    while filled(&lines) > 0
        && lines.iter().all(|line| line.trim().is_empty() || line.trim_start().starts_with('>'))
    {
        for line in &mut lines {
            let rest = line.trim_start();
            let rest = rest.strip_prefix('>').unwrap_or(rest);
            *line = rest.strip_prefix(' ').unwrap_or(rest);
        }
    }
    let indent = |line: &&str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let common = lines.iter().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    let mut out = String::with_capacity(text.len());
    for line in lines {
        out.push_str(line.get(common..).unwrap_or("").trim_end_matches('\r'));
        out.push('\n');
    }
    if !text.ends_with('\n') {
        out.pop();
    }
    (out.as_bytes() != bytes).then(|| out.into_bytes())
}

fn decoded(bytes: &[u8]) -> Option<String> {
    let units = |unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> =
            bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
        String::from_utf16(&units).ok()
    };
    match bytes {
        [0xff, 0xfe, ..] => units(u16::from_le_bytes),
        [0xfe, 0xff, ..] => units(u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8(rest.to_vec()).ok(),
        _ => String::from_utf8(bytes.to_vec()).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_mails_and_editors_add_is_taken_off() {
        let plain = |text: &[u8]| plain(text).map(|bytes| String::from_utf8(bytes).expect("text"));
        assert_eq!(plain(b"> > a 1\r\n> > \n> >   b\n"), Some("a 1\n\n  b\n".into()));
        assert_eq!(plain(b"    a\n      b\n"), Some("a\n  b\n".into()));
        assert_eq!(plain(b"\xef\xbb\xbfa\n"), Some("a\n".into()));
        assert_eq!(plain(b"\xff\xfea\0\n\0"), Some("a\n".into()));
        // The end stays as it was, and so does what needs nothing.
        assert_eq!(plain(b"> a"), Some("a".into()));
        assert_eq!(plain(b"a\n > b\n"), None);
        assert_eq!(plain(b"\xff\xff"), None);
    }
}
