//! Small files of /proc, /sys and cgroups, with errors that name the file.

use std::{fs, path::Path};

pub(crate) fn read(path: impl AsRef<Path>) -> Result<String, String> {
    let path = path.as_ref();
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes to a file that is there.
pub(crate) fn write(path: impl AsRef<Path>, text: &str) -> Result<(), String> {
    let path = path.as_ref();
    let file = fs::OpenOptions::new().write(true).open(path);
    file.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
        .map_err(|error| format!("{}: write {:?}: {error}", path.display(), text.trim()))
}

/// The number behind `key` in a file of `key value` lines.
pub(crate) fn number(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix([' ', ':', '\t']));
    line?.split_whitespace().next()?.parse().ok()
}

/// Minor and major page faults of this process, as far as /proc tells.
pub(crate) fn faults() -> (u64, u64) {
    let text = read("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may hold anything; fields are counted behind it.
    let fields: Vec<&str> = text
        .rsplit_once(')')
        .map(|(_, rest)| rest.split_whitespace().collect())
        .unwrap_or_default();
    let field = |n: usize| fields.get(n).and_then(|text| text.parse().ok()).unwrap_or(0);
    (field(7), field(9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_their_whole_key() {
        let text = "intr 12 3 4\nnr_throttled 5\nnr_throttled_x 6\nvoluntary:\t7\n";
        assert_eq!(number(text, "intr"), Some(12));
        assert_eq!(number(text, "nr_throttled"), Some(5));
        assert_eq!(number(text, "voluntary"), Some(7));
        assert_eq!(number(text, "nr"), None);
    }

    #[test]
    fn faults_are_counted() {
        let before = faults();
        let memory = vec![1_u8; 4 << 20];
        let after = faults();
        assert!(after.0 > before.0, "{before:?} {after:?} {}", memory.len());
    }

    #[test]
    fn a_missing_file_is_named() {
        assert!(read("/no/such").unwrap_err().starts_with("/no/such: "));
        assert!(write("/no/such", "1").unwrap_err().starts_with("/no/such: write \"1\": "));
    }
}
