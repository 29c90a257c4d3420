//! Files of a matrix for `measure`, up to the cells on a machine.
#![no_main]
#![allow(clippy::disallowed_methods, reason = "the macro of libfuzzer opens files")]

use std::sync::OnceLock;

use rtproof_host::{Capture, Facts, Root};
use rtproof_results::measure::MeasurePlan;
use rtproof_run::measure::{cells, matrix::Matrix};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    static FACTS: OnceLock<Facts> = OnceLock::new();
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let matrix = match Matrix::parse(text, "m.toml") {
        Ok(matrix) => matrix,
        Err(why) => {
            assert!(why.starts_with("m.toml:"), "{why}");
            return;
        }
    };
    assert!(!matrix.blocks.is_empty());
    let facts = FACTS.get_or_init(|| {
        let online = [("/sys/devices/system/cpu/online", b"0-7".as_slice())];
        Facts::read(&Root::captured(Capture::of_files(online.into_iter())))
    });
    if let Ok(plan) = cells::plan(&matrix.blocks, matrix.conditions, matrix.common, facts) {
        assert!(!plan.cells.is_empty() && plan.cells.len() <= 10_000);
        let kept = serde_json::to_string(&plan).expect("a plan is text");
        assert_eq!(serde_json::from_str::<MeasurePlan>(&kept).expect("and comes back"), plan);
    }
});
