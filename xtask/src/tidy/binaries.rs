//! A repository that is cloned in a second: no large binary files.

use crate::tree::{Complaint, Contents, Tree};

/// Largest binary file in bytes.
const BINARY_BYTES_MAX: usize = 300 * 1024;
/// Pictures that may be larger, each because the README or the guide shows it.
const LARGE: &[&str] = &[];

/// Checks every binary file.
pub(crate) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, contents) in tree.iter() {
        let Contents::Binary { size_bytes } = contents else {
            continue;
        };
        if *size_bytes > BINARY_BYTES_MAX && !LARGE.contains(&path) {
            let text = format!(
                "a binary file of {} KiB: shrink it below {} KiB, or make it in a test",
                size_bytes / 1024,
                BINARY_BYTES_MAX / 1024
            );
            complaints.push(Complaint::about(path, text));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_binaries_are_refused() {
        let text = "x".repeat(BINARY_BYTES_MAX + 1);
        assert_eq!(check(&Tree::of(&[("captures/a.txt", &text)])), []);
        let small = Tree::of_binary("a.png", BINARY_BYTES_MAX);
        assert_eq!(check(&small), []);
        let large = Tree::of_binary("a.png", BINARY_BYTES_MAX + 1);
        assert_eq!(check(&large).len(), 1);
    }
}
