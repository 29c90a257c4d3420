//! Medians and spreads of few, noisy numbers.

/// Median, quartiles and range of some numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// Spread of numbers; `None` of none.
pub(crate) fn spread(mut values: Vec<f64>) -> Option<Spread> {
    values.sort_unstable_by(f64::total_cmp);
    let at = |q: f64| {
        let place = q * (values.len() - 1) as f64;
        let (low, high) = (values[place.floor() as usize], values[place.ceil() as usize]);
        low + (high - low) * place.fract()
    };
    if values.is_empty() {
        return None;
    }
    Some(Spread { median: at(0.5), low: at(0.25), high: at(0.75), min: at(0.0), max: at(1.0) })
}

impl Spread {
    /// `1.02 (0.97-1.08; 0.80-1.31)`: median, quartiles, range.
    pub(crate) fn text(&self, decimals: usize) -> String {
        let Self { median, low, high, min, max } = self;
        format!(
            "{median:.decimals$} ({low:.decimals$}-{high:.decimals$}; \
             {min:.decimals$}-{max:.decimals$})"
        )
    }
}
