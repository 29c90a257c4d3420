//! Things that are recognised by their form: hardware and network addresses, UUIDs, digests, home
//! folders, disk labels.

use std::{collections::BTreeSet, net::Ipv6Addr};

/// Something found, and what kind of name it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) kind: &'static str,
    pub(super) from: usize,
    pub(super) to: usize,
}

/// Fewest hexadecimal digits of an id: a machine-id has 32, masks and addresses of the kernel 16.
const ID_DIGITS_MIN: usize = 32;

/// What comes before the name of a disk.
const MARKS: &[(&str, &str)] =
    &[("UUID=", "uuid"), ("PARTUUID=", "uuid"), ("LABEL=", "label"), ("PARTLABEL=", "label")];

/// What begins here; `at` is the start of a character.
pub(super) fn at(text: &str, at: usize, hosts: &BTreeSet<String>) -> Option<Pattern> {
    let bytes = text.as_bytes();
    let before = at.checked_sub(1).map(|before| bytes[before]);
    let found = |kind, from, length| Some(Pattern { kind, from, to: from + length });
    let rest = &bytes[at..];
    if let Some(name) = rest.strip_prefix(b"/home/") {
        let from = at + rest.len() - name.len();
        let length =
            length_of(name, |byte| !byte.is_ascii_whitespace() && !b"/\",;:".contains(&byte));
        return if length > 0 { found("user", from, length) } else { None };
    }
    if before.is_some_and(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    if before != Some(b'_') {
        let mark = MARKS.iter().find(|(mark, _)| rest.starts_with(mark.as_bytes()));
        if let Some((mark, kind)) = mark {
            let from = at + mark.len();
            let length = length_of(&bytes[from..], |byte| !b" \t\n\",;:".contains(&byte));
            return if length > 0 { found(kind, from, length) } else { None };
        }
    }
    // The longer of two that begin alike comes later.
    if let Some(host) = hosts.iter().rev().find(|host| is_word(bytes, at, host)) {
        return found("host", at, host.len());
    }
    // A network card named by its address (systemd.net-naming-scheme).
    if let Some(address) = rest.strip_prefix(b"enx")
        && length_of(address, |byte| byte.is_ascii_hexdigit()) == 12
        && ends(&address[12..])
    {
        return found("mac", at + 3, 12);
    }
    if !rest.first()?.is_ascii_hexdigit() && rest.first() != Some(&b':') {
        return None;
    }
    if let Some(length) = uuid(rest) {
        return found("uuid", at, length);
    }
    if let Some(length) = mac(rest) {
        return found("mac", at, length);
    }
    let digits = length_of(rest, |byte| byte.is_ascii_hexdigit());
    if digits >= ID_DIGITS_MIN && ends(&rest[digits..]) {
        return found("id", at, digits);
    }
    if let Some(length) = ipv6(text, at) {
        return found("ip", at, length);
    }
    if before.is_some_and(|byte| b".-_+~".contains(&byte)) {
        // Part of a version.
        return None;
    }
    ipv4(rest).and_then(|length| found("ip", at, length))
}

fn length_of(bytes: &[u8], belongs: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|&byte| !belongs(byte)).unwrap_or(bytes.len())
}

fn ends(rest: &[u8]) -> bool {
    rest.first().is_none_or(|byte| !byte.is_ascii_alphanumeric())
}

/// Whether a word is here on its own, or in a name like `rhel_robot7`.
fn is_word(bytes: &[u8], at: usize, word: &str) -> bool {
    let joins = |byte: &u8| byte.is_ascii_alphanumeric();
    let here = bytes.get(at..at + word.len());
    here.is_some_and(|here| here.eq_ignore_ascii_case(word.as_bytes()))
        && !bytes.get(at + word.len()).is_some_and(joins)
        && !at.checked_sub(1).is_some_and(|before| joins(&bytes[before]) || bytes[before] == b'.')
}

/// 8-4-4-4-12.
fn uuid(rest: &[u8]) -> Option<usize> {
    let fits = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    let (id, after) = rest.split_at_checked(36)?;
    (id.iter().enumerate().all(fits) && ends(after)).then_some(id.len())
}

/// Six pairs or more: Ethernet, with the type before it (BOOTIF), InfiniBand, WWN.
fn mac(rest: &[u8]) -> Option<usize> {
    let is_pair =
        |at: usize| rest.get(at..at + 2).is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit));
    let between = *rest.get(2).filter(|byte| b":-".contains(byte))?;
    let (mut length, mut pairs) = (0, 0);
    while is_pair(length) {
        (length, pairs) = (length + 2, pairs + 1);
        if rest.get(length) != Some(&between) || !is_pair(length + 1) {
            break;
        }
        length += 1;
    }
    (pairs >= 6 && ends(&rest[length..])).then_some(length)
}

/// Two groups or more: `::` and `::1` name no one, and `0::` begins a line of a cgroup file.
fn ipv6(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    let run = length_of(rest.as_bytes(), |byte| byte.is_ascii_hexdigit() || b":.".contains(&byte));
    let run = rest[..run].trim_end_matches(['.']);
    let groups = run.split(':').filter(|group| !group.is_empty()).count();
    let is_address = groups >= 2 && run.parse::<Ipv6Addr>().is_ok();
    (is_address && ends(&rest.as_bytes()[run.len()..])).then_some(run.len())
}

/// Four numbers, and no more: versions have other forms, and `5.15.133.1-microsoft` is one.
fn ipv4(rest: &[u8]) -> Option<usize> {
    let mut length = 0;
    for part in 0..4 {
        if part > 0 {
            if rest.get(length) != Some(&b'.') {
                return None;
            }
            length += 1;
        }
        let digits = length_of(&rest[length..], |byte| byte.is_ascii_digit());
        let number = std::str::from_utf8(&rest[length..length + digits]).ok()?;
        number.parse::<u8>().ok()?;
        length += digits;
    }
    let after = &rest[length..];
    let goes_on = match after.first() {
        Some(b'.') => !ends(&after[1..]),
        Some(b'-') => after.get(1).is_some_and(u8::is_ascii_alphabetic),
        Some(b'+') => true,
        _ => false,
    };
    (ends(after) && !goes_on && after.first() != Some(&b'_')).then_some(length)
}
