//! `Name: value` paragraphs, as apt, zypper and pacman print them, and sizes with a unit.

use std::collections::BTreeMap;

/// Paragraphs of fields; a line that begins with a blank continues the one before.
pub(super) fn paragraphs(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut all = vec![BTreeMap::new()];
    for line in text.lines() {
        if line.trim().is_empty() {
            all.push(BTreeMap::new());
        } else if let Some((name, value)) = line.split_once(':').filter(|_| !line.starts_with(' '))
        {
            let last = all.last_mut().expect("there is one");
            last.insert(name.trim().to_owned(), value.trim().to_owned());
        }
    }
    all.retain(|paragraph| !paragraph.is_empty());
    all
}

/// `12.5 MiB` in bytes; the managers mean powers of 1024, whatever letters they take.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = text.trim().split_once(' ').unwrap_or((text.trim(), "B"));
    let number: f64 = number.parse().ok().filter(|number: &f64| *number >= 0.0)?;
    let factor = match unit.trim() {
        "B" | "" => 1.0,
        "KiB" | "kB" | "KB" | "K" => 1024.0,
        "MiB" | "MB" | "M" => 1024.0 * 1024.0,
        "GiB" | "GB" | "G" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some((number * factor) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_sizes_are_read() {
        let all = paragraphs("Package: a\nDescription: x: y\n more: of it\n\nPackage: b\n");
        assert_eq!(all.len(), 2);
        assert_eq!(all[0]["Description"], "x: y");
        assert!(!all[0].contains_key("more"));
        assert_eq!(bytes("250.0 MiB"), Some(262_144_000));
        assert_eq!(bytes("17"), Some(17));
        assert_eq!(bytes("-1 B"), None);
        assert_eq!(bytes("3 parsecs"), None);
    }
}
