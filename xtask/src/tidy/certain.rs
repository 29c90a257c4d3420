//! One file may say that a cause is certain. The compiler keeps others from making a proof; this
//! keeps them from writing the word, and from changing a share that was proved.

use crate::tree::{Complaint, Files};

/// The file with the gate.
const GATE: &str = "crates/judge/src/proof.rs";

/// What nobody else writes: who asks calls `is_certain`.
const WORDS: &[&str] =
    &["Certainty::Certain", "enum Certainty", "struct Proof ", "DerefMut for Share"];

/// Checks every Rust file of the product.
pub(super) fn check(files: &Files<'_>) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in files.product().filter(|file| file.path != GATE) {
        for (line, code) in file.code() {
            for word in WORDS.iter().filter(|word| code.contains(**word)) {
                let text = format!("`{}`: certain is made in {GATE} alone", word.trim());
                complaints.push(Complaint::at(file.path, line, text));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn only_the_gate_makes_certain() {
        let lines = |path: &str, text: &str| -> Vec<usize> {
            found(check, &[(path, text)]).into_iter().map(|(_, line, _)| line).collect()
        };
        let text = "//! A.\nfn a() -> Certainty {\n    Certainty::Certain\n}\n";
        assert_eq!(lines("crates/judge/src/causes/tasks.rs", text), [3]);
        assert_eq!(lines("crates/run/src/explain/file.rs", text), [3]);
        assert_eq!(lines(GATE, text), [0; 0]);
        assert_eq!(lines("crates/judge/tests/plans.rs", text), [0; 0]);
        let others = "//! A.\npub enum Certainty {}\nimpl DerefMut for Share {}\n";
        assert_eq!(lines("crates/model/src/spikes.rs", others), [2, 3]);
        let fine = "//! Certainty::Certain\nfn a() -> bool { share.is_certain() }\n";
        assert_eq!(lines("crates/render/src/a.rs", fine), [0; 0]);
    }
}
