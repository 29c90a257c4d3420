//! What text and report share of effects: order and numbers.

use rtproof_record::{
    Effects,
    effects::{Decision, KnobResult, Statistic},
};

/// Knobs in the order of interest: what helps most first, what was not tried last.
pub fn ranked(effects: &Effects) -> Vec<&KnobResult> {
    let mut knobs: Vec<&KnobResult> = effects.knobs.iter().collect();
    knobs.sort_by_key(|knob| {
        let place = match knob.decision {
            Decision::Helps => 0,
            Decision::Hurts => 1,
            Decision::NoDifference => 2,
            Decision::CannotDecide => 3,
            Decision::NotTried => 4,
        };
        let ratio = Effects::of(knob, Statistic::P999).map_or(u64::MAX, |effect| effect.ratio_ppm);
        (place, ratio, knob.number)
    });
    knobs
}

/// A ratio as a change: 800 000 is `−20 %`.
pub fn signed(ratio_ppm: u64) -> String {
    let change = ratio_ppm as f64 / 1e4 - 100.0;
    let text = match change.abs() {
        size if size < 9.95 => format!("{size:.1}"),
        size => format!("{size:.0}"),
    };
    match text.as_str() {
        "0.0" => "0 %".into(),
        _ if change < 0.0 => format!("−{text} %"),
        _ => format!("+{text} %"),
    }
}

/// A share: 0.05 is `5 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 && (percent - percent.round()).abs() > 0.05 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

pub fn p_value(ppb: Option<u64>) -> String {
    match ppb.map(|ppb| ppb as f64 / 1e9) {
        None => "not tested".into(),
        Some(p) if p < 0.0001 => "<0.0001".into(),
        Some(p) if p < 0.01 => format!("{p:.4}"),
        Some(p) => format!("{p:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_people_read_them() {
        let texts = [800_000, 1_000_000, 1_034_000, 999_900, 4_000_000, 1].map(signed);
        assert_eq!(texts, ["−20 %", "0 %", "+3.4 %", "0 %", "+300 %", "−100 %"]);
        assert_eq!([0.05, 0.123, 0.034].map(percent), ["5 %", "12 %", "3.4 %"]);
        let p = [None, Some(1_907), Some(4_000_000), Some(50_000_000), Some(1_000_000_000)];
        assert_eq!(p.map(p_value), ["not tested", "<0.0001", "0.0040", "0.05", "1.00"]);
    }
}
