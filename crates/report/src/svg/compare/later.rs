//! The share of wake-ups that are later than a latency, both axes logarithmic: each nine is as high
//! as the next, and the far tail is as wide as the bulk.

use maud::{Markup, html};

use super::{Series, ends, overlay::Drawn};
use crate::svg::{
    Path,
    frame::{About, Frame},
    labels, px,
    scale::{Scale, Tick},
};

/// Draws the lines; `None` where nothing was measured.
pub(crate) fn draw(series: &[Series], drawn: Drawn<'_>) -> Option<Markup> {
    let (low, high) = ends(series)?;
    let most = series.iter().map(|series| series.bins.total()).max()?.max(10) as f64;
    let low = low.max(100.0).min(high.max(100.0));
    let x = Scale::Log { low: low / 1.1, high: high.max(low * 2.0) * 1.15 };
    let y = Scale::Log { low: 0.6 / most, high: 1.0 };
    let mut frame = Frame::wide(drawn.height, 30.0, x, y);
    // Seven nines are a long name.
    frame.left += 28.0;
    let about = About {
        id: drawn.id,
        title: drawn.title,
        text: drawn.text,
        series: series.len(),
        units: ("ns", ""),
    };
    let marks = series.iter().filter(|series| series.max_ns.is_some());
    let body = html! {
        (frame.y_axis(&nines(&frame), "quantile: the wake-ups above are later"))
        (frame.x_axis(&frame.x.latency_ticks(13.0), "latency"))
        @for series in series.iter().rev() {
            g class={ "series " (series.class()) } {
                title { (series.label) ", largest " (series.max_text()) }
                path class=(series.line()) d=(curve(&frame, series)) {}
                @if let Some(max_ns) = series.max_ns {
                    circle.ends r="2.8" cx=(px(frame.px_x(max_ns as f64)))
                        cy=(px(frame.px_y(1.0 / series.bins.total().max(1) as f64))) {}
                }
            }
        }
        (frame.budget_upright(drawn.budget_ns))
        @if drawn.named { (labels::marks(&frame, marks.map(Series::mark).collect())) }
    };
    Some(frame.root(about, &body))
}

/// Ticks at p0, p90, p99, ...
fn nines(frame: &Frame) -> Vec<Tick> {
    let low = frame.y.ends().0;
    let all = (0..12_i32).map(|nines| (nines, 10_f64.powi(-nines)));
    all.take_while(|&(_, share)| share >= low)
        .map(|(nines, value)| {
            let decimals = (nines as usize).saturating_sub(2);
            let text = match nines {
                0 => "all".into(),
                _ => format!("p{:.decimals$}", 100.0 - 100.0 * value),
            };
            Tick { value, text: Some(text) }
        })
        .collect()
}

/// Steps: across to a value, down to the share that is later; the last ends at one of n.
fn curve(frame: &Frame, series: &Series) -> String {
    let n = series.bins.total();
    let mut path = Path::default();
    let mut seen = 0_u64;
    let mut at = (frame.left, frame.top);
    for bin in series.bins.iter() {
        seen += bin.n;
        let last = seen == n;
        let value = match (last, series.max_ns) {
            (true, Some(max_ns)) => max_ns as f64,
            _ => series.value(bin),
        };
        let (x, y) = (frame.px_x(value), frame.px_y((n - seen).max(1) as f64 / n as f64));
        if path.is_empty() {
            path.to(frame.left, frame.px_y(1.0));
        } else if !last && (x - at.0).abs() < 0.4 && (y - at.1).abs() < 0.4 {
            continue;
        }
        path.across(x).down(y);
        at = (x, y);
    }
    path.finish()
}
