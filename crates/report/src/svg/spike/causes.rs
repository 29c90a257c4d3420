//! The first lane: what each stretch went into, with its name in it or, where it is too narrow, on
//! a leader line above.

use maud::{Markup, html};
use rtproof_judge::causes::{Share, title};

use super::{
    layout::{Layout, PAD},
    text::{self, SIZE, fitted, width},
};
use crate::{
    spike::{self, bars::Bar},
    svg::{
        Path,
        frame::{LEFT, WIDTH},
        px,
    },
};

/// Height of the lane: three lines of text.
pub(super) const HEIGHT: f64 = 58.0;
/// Height of a row of names above.
const ROW: f64 = 18.0;
/// Most names above; the list beside the picture has all.
const ABOVE_MAX: usize = 8;
/// Widest of them, without its time.
const ABOVE_WIDTH: f64 = 260.0;
/// Narrower bars are drawn in the full colour.
const THIN: f64 = 5.0;
/// Distance of the lines of a hatching.
const HATCH: f64 = 9.0;

/// Draws names and bars; moves `y` below them.
pub(super) fn draw(layout: &Layout<'_>, y: &mut f64) -> Markup {
    let above = above(layout, y);
    let top = *y;
    *y += HEIGHT;
    html! {
        text.lane x=(px(LEFT - 8.0)) y=(px(top + HEIGHT / 2.0 + 4.5)) text-anchor="end" {
            "why late"
        }
        g.causes { @for bar in &layout.bars { (one(layout, bar, top)) } }
        (above)
    }
}

/// A bar with what of its texts fits.
fn one(layout: &Layout<'_>, bar: &Bar, top: f64) -> Markup {
    let share = &layout.explanation.shares[bar.share];
    let (from, to) = (layout.axis.at(bar.from_ns), layout.axis.at(bar.to_ns));
    let room = to - from - PAD + 2.0;
    let name = [title(&share.cause).to_owned(), spike::short(&share.cause)];
    let name = name.into_iter().find(|name| width(name, SIZE) <= room);
    let time = spike::us(bar.ns());
    let time = (width(&time, SIZE) <= room).then_some(time);
    let culprit = fitted(&share.culprit, room, SIZE).filter(|culprit| !culprit.is_empty());
    let lines = [(name, "strong"), (culprit, ""), (time, "")];
    let lines: Vec<_> =
        lines.into_iter().filter_map(|(line, class)| Some((line?, class))).collect();
    let first = top + HEIGHT / 2.0 + 7.0 - 8.5 * (lines.len().max(1) as f64 - 1.0);
    let thin = if to - from < THIN { " thin" } else { "" };
    let halo = if share.is_certain() { "halo" } else { "halo wide" };
    html! {
        g class={ "span " (spike::class(&share.cause)) (thin) } {
            title { (tip(layout, bar, share)) }
            (rect(from, to, top, HEIGHT))
            g.band { (rect(from, to, top, 4.0)) }
            @if !share.is_certain() { path.hatch d=(hatch(from, to, top, top + HEIGHT)) {} }
            @for (i, (line, class)) in lines.iter().enumerate() {
                text class=(format!("{class} {halo}")) x=(px(f64::midpoint(from, to)))
                    y=(px(first + 17.0 * i as f64)) text-anchor="middle" { (line) }
            }
        }
    }
}

/// A rectangle that can be seen however narrow, with a gap to the next one.
pub(super) fn rect(from: f64, to: f64, top: f64, height: f64) -> Markup {
    let gap = if to - from > 3.0 { 1.0 } else { 0.0 };
    html! {
        rect x=(px(from)) y=(px(top)) width=(px((to - from - gap).max(1.0))) height=(px(height)) {}
    }
}

fn tip(layout: &Layout<'_>, bar: &Bar, share: &Share) -> String {
    let due_ns = layout.due_ns();
    let merged = if bar.is_merged { "many short ones, most of it " } else { "" };
    let mut tip = format!("{merged}{}: {}", spike::named(share), spike::us(bar.ns()));
    if share.ns != bar.ns() {
        tip.push_str(&format!(" of {} in all", spike::us(share.ns)));
    }
    let from_us = spike::us_number(bar.from_ns.saturating_sub(due_ns));
    tip.push_str(&format!(", from {from_us} µs after it was due"));
    if let Some(more) = spike::otherwise(share) {
        tip.push_str(&format!("; {more}"));
    }
    tip
}

/// Rising lines within a rectangle.
pub(super) fn hatch(from: f64, to: f64, top: f64, bottom: f64) -> String {
    let height = bottom - top;
    let lines = (((to - from + height) / HATCH).floor().max(0.0)) as usize;
    let mut path = Path::default();
    for i in 1..=lines {
        // The line from (x, bottom) to (x + height, top), as far as it lies within.
        let x = from - height + HATCH * i as f64;
        let (low, high) = (x.max(from), (x + height).min(to));
        if high > low {
            path.to(low, bottom - (low - x)).line(high, bottom - (high - x));
        }
    }
    path.finish()
}

/// Names on leader lines, of shares whose bars are too narrow for theirs.
fn above(layout: &Layout<'_>, y: &mut f64) -> Markup {
    let mut names: Vec<(f64, String, &str)> = Vec::new();
    for (share, bar) in layout.explanation.shares.iter().zip(&layout.named) {
        let Some(bar) = *bar else { continue };
        let room = layout.width(bar) - PAD + 2.0;
        let is_in = width(&spike::short(&share.cause), SIZE) <= room;
        if is_in || names.len() >= ABOVE_MAX {
            continue;
        }
        let bar = &layout.bars[bar];
        let x = f64::midpoint(layout.axis.at(bar.from_ns), layout.axis.at(bar.to_ns));
        let name = fitted(&spike::named_short(share), ABOVE_WIDTH, SIZE).unwrap_or_default();
        let text = format!("{name} {}", spike::us(share.ns));
        names.push((x, text, spike::class(&share.cause)));
    }
    let extents: Vec<(f64, f64)> =
        names.iter().map(|(x, text, _)| (*x, width(text, SIZE) + 4.0)).collect();
    let places = text::place(&extents, WIDTH - 4.0);
    let rows = places.iter().map(|place| place.row + 1).max().unwrap_or(0);
    let bottom = *y + rows as f64 * ROW + if rows > 0 { 6.0 } else { 0.0 };
    *y = bottom;
    html! {
        @for ((x, text, class), place) in names.iter().zip(&places) {
            @let base = bottom - 8.0 - place.row as f64 * ROW;
            @let at = if place.is_end { x - 4.0 } else { x + 4.0 };
            g class={ "leader " (class) } {
                line x1=(px(*x)) x2=(px(*x)) y1=(px(base - 9.0)) y2=(px(bottom)) {}
                text x=(px(at)) y=(px(base))
                    text-anchor=(if place.is_end { "end" } else { "start" }) { (text) }
            }
        }
    }
}

/// The same bars to scale, and where each of them lies below.
pub(super) fn overview(layout: &Layout<'_>, y: &mut f64) -> Markup {
    let (height, fall) = (14.0, 20.0);
    let top = *y;
    let (due, ran) = (layout.axis.at(layout.due_ns()), layout.axis.at(layout.ran_ns()));
    let length_ns = (layout.ran_ns() - layout.due_ns()).max(1) as f64;
    let place =
        |at_ns: u64| due + (at_ns.saturating_sub(layout.due_ns())) as f64 / length_ns * (ran - due);
    *y += height + fall;
    html! {
        text.lane x=(px(LEFT - 8.0)) y=(px(top + height - 2.5)) text-anchor="end" { "to scale" }
        g.overview {
            @for bar in &layout.bars {
                @let share = &layout.explanation.shares[bar.share];
                @let (from, to) = (place(bar.from_ns), place(bar.to_ns));
                @let thin = if to - from < THIN { " thin" } else { "" };
                g class={ "span " (spike::class(&share.cause)) (thin) } {
                    title { (tip(layout, bar, share)) }
                    (rect(from, to, top, height))
                }
            }
            path.widen d=(falls(layout, &place, top + height, top + height + fall)) {}
        }
    }
}

/// Lines from the ends of the named bars to scale to those below.
fn falls(layout: &Layout<'_>, place: &dyn Fn(u64) -> f64, top: f64, bottom: f64) -> String {
    let mut path = Path::default();
    let named = layout.named.iter().flatten().map(|&bar| &layout.bars[bar]);
    let mut times: Vec<u64> = named.flat_map(|bar| [bar.from_ns, bar.to_ns]).collect();
    times.sort_unstable();
    times.dedup();
    for at_ns in times {
        path.to(place(at_ns), top + 1.0).line(layout.axis.at(at_ns), bottom - 3.0);
    }
    path.finish()
}
