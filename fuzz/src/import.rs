//! Bytes as the result of another tool, all the way to its quantiles and its record's checks.

use rtproof_record::import::{self, DOUBTS, FORMATS, Hints};

/// Reads them as the format that `which` says, or as their content says.
///
/// # Panics
/// When what was read does not hold together: that is what the target looks for.
pub fn read(which: u8, bytes: &[u8]) {
    let format = FORMATS.get(usize::from(which) % (FORMATS.len() + 1)).map(|f| f.id.to_owned());
    let known = which >= 128;
    let hints = Hints {
        name: "fuzz".into(),
        format,
        command: None,
        period_ns: known.then_some(1_000_000),
        duration_ns: known.then_some(1_000_000_000),
        unit_ns: None,
    };
    let imported = match import::read(bytes, &hints) {
        Ok(imported) => imported,
        Err(error) => {
            assert!(error.to_string().starts_with("fuzz"), "{error}");
            return;
        }
    };
    assert!(!imported.threads.is_empty() && imported.digest.len() == 64);
    for doubt in &imported.doubts {
        assert!(DOUBTS.iter().any(|(id, _)| *id == doubt.id) && !doubt.text.is_empty());
    }
    for thread in &imported.threads {
        assert!(thread.bins.is_empty() || thread.bins.total() == thread.n, "{thread:?}");
        assert!(thread.overflow <= thread.n, "{thread:?}");
        let median = thread.quantile(0.5, imported.resolution_ns);
        let top = thread.quantile(1.0, imported.resolution_ns);
        assert!(thread.bins.is_empty() || median.zip(top).is_some_and(|(m, t)| m.ns <= t.ns));
        if let Some(deadline) = thread.deadline() {
            assert!(deadline.total() >= thread.bins.total());
        }
    }
}
