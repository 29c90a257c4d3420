//! Unsafe code is in one file of `measure`, where it is read as a whole.

use crate::source::Source;
use crate::tree::{Complaint, Tree};

/// The files that may hold unsafe code. A counting allocator cannot be written without it.
const ALLOWED: &[&str] = &[
    "crates/measure/src/sys/mod.rs",
    "crates/measure/src/sys/numa.rs",
    "crates/measure/src/sys/clock.rs",
    "crates/measure/src/sys/perf.rs",
    "crates/measure/src/sys/process.rs",
    "crates/measure/src/sys/signals.rs",
    "crates/measure/tests/alone/session.rs",
    "crates/stats/tests/inside.rs",
    "marks/src/ring.rs",
];

/// Checks every Rust file.
pub(crate) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, text) in tree.rust().filter(|(path, _)| !ALLOWED.contains(path)) {
        for line in Source::parse(text).lines_with_word("unsafe") {
            let text = format!("unsafe code: move it to {} behind a safe function", ALLOWED[0]);
            complaints.push(Complaint::at(path, line, text));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_is_found_in_code_and_only_there() {
        let text = "//! Not unsafe.\nfn a() {\n    unsafe { b() }\n}\n";
        assert_eq!(check(&Tree::of(&[("crates/host/src/a.rs", text)]))[0].line, 3);
        assert_eq!(check(&Tree::of(&[(ALLOWED[0], text)])), []);
        let text = "//! Not unsafe.\n#![deny(unsafe_code)]\nconst A: &str = \"unsafe\";\n";
        assert_eq!(check(&Tree::of(&[("crates/host/src/a.rs", text)])), []);
    }
}
