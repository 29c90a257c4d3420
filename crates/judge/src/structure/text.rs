//! Numbers of a sentence.

use crate::quantity;

/// A probability: below a billionth all are the same.
pub(super) fn probability(p: f64) -> String {
    match p {
        p if p < 1e-9 => "p < 1e-9".into(),
        p if p < 0.001 => format!("p = {p:.0e}"),
        p => format!("p = {p:.3}"),
    }
}

/// A period with as many digits as its error leaves, three decimals at most.
pub(super) fn period(period_ns: f64, error_ns: f64) -> String {
    let (unit_ns, name) = match period_ns {
        p if p >= 999.5e6 => (1e9, "s"),
        p if p >= 999.5e3 => (1e6, "ms"),
        _ => (1e3, "µs"),
    };
    let (value, error) = (period_ns / unit_ns, (error_ns / unit_ns).max(1e-9));
    let decimals = (-error.log10()).ceil().clamp(0.0, 3.0) as usize;
    format!("{value:.decimals$} {name}")
}

pub(super) fn time(ns: f64) -> String {
    quantity::ns(ns.round() as u64)
}

/// How many would be so by chance.
pub(super) fn expected(count: f64) -> String {
    match count {
        c if c < 0.1 => "fewer than 0.1".into(),
        c if c < 10.0 => format!("{c:.1}"),
        c => format!("{c:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_a_person_writes_it() {
        assert_eq!(probability(3e-12), "p < 1e-9");
        assert_eq!(probability(4.4e-5), "p = 4e-5");
        assert_eq!(probability(0.0042), "p = 0.004");
        assert_eq!(period(1_000_012_345.0, 9_000.0), "1.000 s");
        assert_eq!(period(63_720_464.0, 150.0), "63.720 ms");
        assert_eq!(period(999_990_000.0, 2e7), "1.00 s");
        assert_eq!(period(840.2e9, 0.3e9), "840.2 s");
        assert_eq!((expected(0.02), expected(0.72)), ("fewer than 0.1".into(), "0.7".into()));
    }
}
