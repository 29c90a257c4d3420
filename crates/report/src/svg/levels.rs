//! Mean, mean ± standard deviation and percentiles as uprights in a histogram, of all CPUs together
//! and in the wake-up view. A switch of the page shows them: they would hide what lies below.

use maud::{Markup, html};
use rtproof_judge::{report::Measured, units};
use rtproof_stats::quantile::Q;

use super::{frame::Frame, px};

/// Height of a name: each has a line of its own, so that none hides another.
const NAME: f64 = 14.0;
/// Room that a name takes to the right of its upright.
const NAME_WIDTH: f64 = 110.0;

/// Names and values, ascending. A mean - sd of zero or less is left out: no latency is there.
fn levels(measured: &Measured) -> Vec<(String, f64)> {
    let mut levels: Vec<(String, f64)> = Vec::new();
    if let Some(mean_ns) = measured.mean_ns {
        levels.push(("μ".into(), mean_ns));
        if let Some(sd_ns) = measured.sd_ns {
            levels.push(("μ − σ".into(), mean_ns - sd_ns));
            levels.push(("μ + σ".into(), mean_ns + sd_ns));
        }
    }
    let carried =
        Q::TABLE.into_iter().filter_map(|q| Some((q.name(), measured.wake_ns(q)? as f64)));
    levels.extend(carried);
    levels.retain(|&(_, ns)| ns > 0.0);
    levels.sort_by(|a, b| a.1.total_cmp(&b.1));
    levels
}

/// Draws those that the axis holds.
pub(super) fn draw(frame: &Frame, measured: &Measured) -> Markup {
    let mut levels = levels(measured);
    levels.retain(|&(_, ns)| frame.x.holds(ns));
    html! {
        g.levels {
            @for (at, (name, ns)) in levels.iter().enumerate() {
                @let x = frame.px_x(*ns);
                @let is_right = x > frame.right - NAME_WIDTH;
                line x1=(px(x)) x2=(px(x)) y1=(px(frame.top)) y2=(px(frame.bottom)) {}
                text.halo x=(px(if is_right { x - 4.0 } else { x + 4.0 }))
                    y=(px(frame.top + NAME * (at as f64 + 1.0)))
                    text-anchor=(if is_right { "end" } else { "start" }) {
                    (name) " " (units::ns(ns.round() as u64))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rtproof_stats::quantile::Quantile;

    use super::*;

    fn measured(mean_ns: Option<f64>, sd_ns: Option<f64>, wake: &[(Q, u64)]) -> Measured {
        let quantile = |&(q, ns)| Quantile { q, value_ns: Some(ns), low_ns: None, high_ns: None };
        Measured {
            scheduled: 9,
            sampled: 9,
            missed: 0,
            late: 0,
            min_ns: None,
            max_ns: None,
            mean_ns,
            sd_ns,
            deadline_mean_ns: None,
            wake: wake.iter().map(quantile).collect(),
            deadline: Vec::new(),
            n_eff: 9,
        }
    }

    #[test]
    fn only_what_the_samples_carry_stands_in_order() {
        let of = measured(Some(7000.0), Some(2000.0), &[(Q::P50, 6500), (Q::P95, 9500)]);
        let found: Vec<_> = levels(&of);
        let names: Vec<(&str, f64)> = found.iter().map(|(name, ns)| (name.as_str(), *ns)).collect();
        let want =
            [("μ − σ", 5000.0), ("p50", 6500.0), ("μ", 7000.0), ("μ + σ", 9000.0), ("p95", 9500.0)];
        assert_eq!(names, want);
        // The deviation of outliers is larger than the mean.
        let wide: Vec<_> = levels(&measured(Some(7000.0), Some(9000.0), &[]));
        assert_eq!(wide.iter().map(|level| level.1).collect::<Vec<_>>(), [7000.0, 16_000.0]);
        assert!(levels(&measured(None, None, &[])).is_empty());
    }
}
