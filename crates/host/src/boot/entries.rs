//! Entries of the Boot Loader Specification (UAPI.1), type #1: one file for each, read by GRUB on
//! Fedora and by systemd-boot.

use std::cmp::Ordering;

use super::{
    cmdline,
    cmdline::Word,
    error::BootError,
    loader::{Entry, ID, TITLE},
    own::Files,
    view::{self, View},
};
use crate::change::Change;

/// First line of our entry: a file of our name without it is not ours.
const MARK: &str = "# made by rtproof tune, removed by rtproof tune undo";
/// Entries read in one folder.
const FILES_MAX: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct File {
    /// Name without the boot counter, with `.conf`.
    pub name: String,
    pub path: String,
    /// Key, value and line, in order.
    lines: Vec<(String, String, usize)>,
    /// Tries that are left, where boots are counted.
    pub tries_left: Option<u32>,
}

/// Reads every entry of a folder, in the order of their names.
pub(super) fn read(view: &View<'_>, folder: &str) -> Result<Vec<File>, BootError> {
    let names = view.names(folder)?;
    let names: Vec<&String> = names.iter().filter(|name| name.ends_with(".conf")).collect();
    if names.len() > FILES_MAX {
        let why = format!("{} entries; expected at most {FILES_MAX}", names.len());
        return Err(BootError::file(folder, why));
    }
    let mut files = Vec::new();
    for name in names {
        let path = format!("{folder}/{name}");
        let Some(text) = view.text(&path)? else { continue };
        files.push(parse(name, path, &text));
    }
    Ok(files)
}

fn parse(name: &str, path: String, text: &str) -> File {
    let (stem, tries_left) = uncounted(name.trim_end_matches(".conf"));
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        lines.push((key.to_owned(), value.trim().to_owned(), index + 1));
    }
    File { name: format!("{stem}.conf"), path, lines, tries_left }
}

/// A name without its boot counter, `+LEFT` or `+LEFT-DONE`, and how many tries are left.
pub(super) fn uncounted(stem: &str) -> (&str, Option<u32>) {
    let counted = stem.rsplit_once('+').and_then(|(stem, counter)| {
        let (left, done) = counter.split_once('-').unwrap_or((counter, "0"));
        done.parse::<u32>().ok()?;
        Some((stem, left.parse().ok()?))
    });
    match counted {
        Some((stem, left)) => (stem, Some(left)),
        None => (stem, None),
    }
}

impl File {
    /// The last value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let found = self.lines.iter().rev().find(|(known, _, _)| known == key);
        found.map(|(_, value, _)| value.as_str())
    }

    fn all(&self, key: &str) -> impl Iterator<Item = (&str, usize)> {
        let is_it = move |(known, _, _): &&(String, String, usize)| known == key;
        self.lines.iter().filter(is_it).map(|(_, value, line)| (value.as_str(), *line))
    }

    /// Its options, those of several lines joined.
    pub(super) fn options(&self) -> String {
        self.all("options").map(|(value, _)| value).collect::<Vec<_>>().join(" ")
    }

    /// Name without `.conf`.
    pub(super) fn stem(&self) -> &str {
        self.name.trim_end_matches(".conf")
    }

    /// Whether it is ours, by name.
    pub(super) fn is_ours(&self) -> bool {
        IDS.contains(&self.stem())
    }

    /// As an entry, with this identity and these options.
    pub(super) fn entry(&self, id: &str, options: &str) -> Entry {
        let kernel = ["linux", "efi", "uki"].iter().find_map(|key| self.get(key));
        let line = self.all("options").next().map_or(1, |(_, line)| line);
        let initrd = self.all("initrd").flat_map(|(value, _)| value.split_whitespace());
        Entry {
            title: self.get("title").unwrap_or(self.stem()).to_owned(),
            id: id.to_owned(),
            kernel: kernel.unwrap_or_default().to_owned(),
            initrd: initrd.map(str::to_owned).collect(),
            cmdline: options.to_owned(),
            file: self.path.clone(),
            line,
        }
    }

    /// Our copy of it: another title, other options, and no sort key, so that it comes last.
    pub(super) fn copy(
        &self,
        options: &str,
        words: &[Word],
        own: Option<&Files>,
    ) -> Result<String, BootError> {
        let options = cmdline::edited(options, words)?;
        let mut text = head();
        for (key, value, _) in &self.lines {
            match (key.as_str(), own) {
                ("title" | "options" | "sort-key" | "id", _) | ("initrd", Some(_)) => {}
                ("linux", Some(own)) => text += &format!("linux {}\n", own.kernel),
                ("version", Some(own)) => text += &format!("version {}\n", own.release),
                _ => text += &format!("{key} {value}\n"),
            }
        }
        if let Some(own) = own {
            let of_base = self.all("initrd").flat_map(|(value, _)| value.split_whitespace());
            let initrds = own.initrds(of_base);
            if !initrds.is_empty() {
                text += &format!("initrd {}\n", initrds.join(" "));
            }
        }
        text += &format!("options {options}\n");
        Ok(text)
    }
}

/// Refuses a file of our name that rtproof did not write.
pub(super) fn not_taken(view: &View<'_>, path: &str) -> Result<(), BootError> {
    match view.bytes(path)? {
        Some(bytes) if !bytes.starts_with(MARK.as_bytes()) => {
            Err(BootError::file(path, "this entry was not made by rtproof; give it another name"))
        }
        _ => Ok(()),
    }
}

/// The change that removes an entry of ours; `None` where it is not there.
pub(super) fn removal(view: &View<'_>, path: &str) -> Result<Option<Change>, BootError> {
    not_taken(view, path)?;
    Ok(view.bytes(path)?.map(|_| view::gone(path)))
}

/// The mark of our files, for entries that are made and not copied.
pub(super) fn head() -> String {
    format!("{MARK}\ntitle {TITLE}\n")
}

/// Names of our entry. The second one sorts last among entries that have no sort key and are
/// chosen by their place: the newest name, which is first, is not ours then.
pub(super) const IDS: [&str; 2] = [ID, "a-rtproof-real-time"];

/// The name with which ours comes after `others`, newest first.
pub(super) fn id_after<'a>(
    mut others: impl Iterator<Item = &'a str> + Clone,
) -> Option<&'static str> {
    IDS.into_iter()
        .find(|id| others.clone().all(|other| compare(other, id) == Ordering::Greater))
        .filter(|_| others.next().is_some())
}

/// Compares versions as UAPI.10 does: digits as numbers, letters by their place, `~` before
/// everything, `-`, `^` and `.` in this order.
pub(super) fn compare(one: &str, other: &str) -> Ordering {
    let counts = |c: &u8| c.is_ascii_alphanumeric() || b"~-^.".contains(c);
    let mut a: Vec<u8> = one.bytes().filter(counts).rev().collect();
    let mut b: Vec<u8> = other.bytes().filter(counts).rev().collect();
    loop {
        // What ends first is older, but for `~`.
        let rank = |rest: &[u8]| match rest.last() {
            Some(b'~') => 0,
            None => 1,
            Some(b'-') => 2,
            Some(b'^') => 3,
            Some(b'.') => 4,
            Some(c) if c.is_ascii_alphabetic() => 5,
            Some(_) => 6,
        };
        let order = rank(&a).cmp(&rank(&b));
        if order.is_ne() {
            return order;
        }
        match rank(&a) {
            1 => return Ordering::Equal,
            5 => {
                let order = take(&mut a, u8::is_ascii_alphabetic)
                    .cmp(&take(&mut b, u8::is_ascii_alphabetic));
                if order.is_ne() {
                    return order;
                }
            }
            6 => {
                let number = |digits: Vec<u8>| {
                    let digits: Vec<u8> = digits.into_iter().skip_while(|&d| d == b'0').collect();
                    (digits.len(), digits)
                };
                let order = number(take(&mut a, u8::is_ascii_digit))
                    .cmp(&number(take(&mut b, u8::is_ascii_digit)));
                if order.is_ne() {
                    return order;
                }
            }
            _ => {
                a.pop();
                b.pop();
            }
        }
    }
}

/// Takes what is of a kind from the front of a reversed text.
fn take(rest: &mut Vec<u8>, is_it: impl Fn(&u8) -> bool) -> Vec<u8> {
    let mut taken = Vec::new();
    while let Some(c) = rest.pop_if(|c| is_it(c)) {
        taken.push(c);
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_in_order() {
        let ascending = [
            "~a",
            "",
            "-a",
            "a",
            "a-1",
            "a1",
            "ab",
            "b",
            "b-6.1.0-9",
            "b-6.1.0-10",
            "b-6.1.10",
            "b1",
            "rtproof-real-time",
            "0-rescue",
            "0f",
            "6",
            "6.1",
            "12",
            "0123",
            "123a",
        ];
        for (at, one) in ascending.iter().enumerate() {
            for (other_at, other) in ascending.iter().enumerate() {
                let order = compare(one, other);
                // Zeros in front count for nothing.
                assert_eq!(order, at.cmp(&other_at), "{one} {other}");
                assert_eq!(order, compare(other, one).reverse());
            }
        }
    }

    #[test]
    fn ours_comes_last() {
        let ids = |names: &[&'static str]| id_after(names.iter().copied());
        assert_eq!(ids(&["6d1f-6.1.0.conf", "9a-6.1.0.conf"]), Some("rtproof-real-time"));
        assert_eq!(ids(&["c31f-6.1.0.conf", "9a-6.1.0.conf"]), Some("a-rtproof-real-time"));
        assert_eq!(ids(&["a31f-6.1.0", "a0"]), Some("a-rtproof-real-time"));
        assert_eq!(ids(&["a-a"]), None);
        assert_eq!(ids(&[]), None);
    }

    #[test]
    fn counters_are_no_part_of_a_name() {
        assert_eq!(uncounted("foo+3-1"), ("foo", Some(3)));
        assert_eq!(uncounted("foo+0"), ("foo", Some(0)));
        assert_eq!(uncounted("foo+bar"), ("foo+bar", None));
        assert_eq!(uncounted("6.1+deb12"), ("6.1+deb12", None));
    }
}
