//! The lanes below the causes: who ran on the late CPU, its interrupts and softirqs, what was lost
//! of its events, and what other CPUs did to it.

use maud::{Markup, html};
use rtproof_trace::Window;

use super::{
    causes::{hatch, rect},
    layout::{Layout, RIGHT},
    text::{SMALL, fitted, width},
};
use crate::{
    spike::{
        self,
        lanes::{Kind, Lanes, Moment, Piece},
    },
    svg::{
        frame::{LEFT, WIDTH},
        px,
    },
};

/// Height of a lane, and from lane to lane.
const HEIGHT: f64 = 18.0;
const STEP: f64 = 22.0;
/// Pieces that begin nearer than this to one before, and are narrower, are not drawn.
const NEAR: f64 = 1.5;

/// Draws the lanes; moves `y` below them.
pub(super) fn draw(layout: &Layout<'_>, window: &Window, y: &mut f64) -> Markup {
    let of = Lanes::of(layout.explanation, window, layout.axis.ends_ns());
    let cpu = format!("CPU {} ran", window.cpu);
    let lanes =
        [(cpu.as_str(), &of.tasks), ("interrupts", &of.interrupts), ("softirqs", &of.softirqs)];
    *y += 8.0;
    let top = *y;
    let mut shown = Vec::new();
    for (name, pieces) in lanes.into_iter().filter(|(_, pieces)| !pieces.is_empty()) {
        shown.push(lane(layout, name, pieces, *y));
        *y += STEP;
    }
    let bottom = *y - (STEP - HEIGHT);
    let lost = lost(layout, window, (top, bottom), y);
    let mut before = None;
    for moment in &of.moments {
        shown.push(row(layout, moment, before.replace(moment.cpu) != Some(moment.cpu), *y));
        *y += STEP - 3.0;
    }
    html! { g.lanes { @for lane in &shown { (lane) } (lost) } }
}

fn lane(layout: &Layout<'_>, name: &str, pieces: &[Piece], top: f64) -> Markup {
    let place = |piece: &Piece| (layout.axis.at(piece.from_ns), layout.axis.at(piece.to_ns));
    let mut shown: Vec<(&Piece, f64, f64)> = Vec::new();
    for piece in pieces {
        let (from, to) = place(piece);
        let is_near = shown.last().is_some_and(|before| from - before.1 < NEAR);
        if to - from >= NEAR || !is_near {
            shown.push((piece, from, to));
        }
    }
    let due = layout.axis.at(layout.due_ns());
    html! {
        text.lane x=(px(LEFT - 8.0)) y=(px(top + 13.0)) text-anchor="end" { (name) }
        @for (i, (piece, from, to)) in shown.iter().enumerate() {
            @let next = shown.get(i + 1).map_or(RIGHT, |next| next.1);
            g class={ "piece " (class(piece.kind)) } {
                title { (tip(layout, piece)) }
                (rect(*from, *to, top, HEIGHT))
                @if let Some((x, text)) = name_of(piece, (*from, *to), next, due) {
                    text.halo x=(px(x)) y=(px(top + 13.0)) { (text) }
                }
            }
        }
    }
}

/// A piece's name: in it, or beside it where nothing follows; without its policy before cut. The
/// line of the time when it was due (`due`) runs through none.
fn name_of(piece: &Piece, (from, to): (f64, f64), next: f64, due: f64) -> Option<(f64, String)> {
    let from = if from < due && to - due > due - from { due } else { from };
    let room = to - from - 8.0;
    let bare = piece.name.split(" [").next().unwrap_or_default();
    let names = [piece.name.as_str(), bare];
    let wide = |name: &str| width(name, SMALL);
    if let Some(name) = names.into_iter().find(|name| wide(name) <= room) {
        return Some((from + 4.0, name.into()));
    }
    if let Some(name) = names.into_iter().find(|name| wide(name) + 10.0 <= next - to) {
        return Some((to + 4.0, name.into()));
    }
    Some((from + 4.0, fitted(bare, room, SMALL)?))
}

const fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::Late => "late",
        Kind::Task => "s1",
        Kind::Idle => "idle",
        Kind::Interrupt => "s0",
        Kind::Softirq => "s2",
    }
}

fn tip(layout: &Layout<'_>, piece: &Piece) -> String {
    let due_ns = layout.due_ns();
    let begins = match piece.from_ns.checked_sub(due_ns) {
        Some(after_ns) => format!("{} after it was due", spike::us(after_ns)),
        None => format!("{} before it was due", spike::us(due_ns - piece.from_ns)),
    };
    format!("{}: {}, from {begins}", piece.name, spike::us(piece.to_ns - piece.from_ns))
}

/// Stretches without events, over the lanes and in a lane of their own.
fn lost(layout: &Layout<'_>, window: &Window, lanes: (f64, f64), y: &mut f64) -> Markup {
    let ends_ns = layout.axis.ends_ns();
    let seen = |lost: &&rtproof_trace::Lost| lost.from_ns < ends_ns.1 && ends_ns.0 < lost.to_ns;
    let stretches: Vec<_> = window.lost.iter().filter(seen).take(64).collect();
    if stretches.is_empty() {
        return Markup::default();
    }
    let top = *y;
    *y += STEP;
    let mut last = 0.0;
    html! {
        text.lane x=(px(LEFT - 8.0)) y=(px(top + 13.0)) text-anchor="end" { "lost" }
        @for stretch in stretches {
            @let from = layout.axis.at(stretch.from_ns);
            @let to = layout.axis.at(stretch.to_ns).max(from + 2.0);
            @let text = lost_text(stretch.count);
            @let is_end = from + width(&text, SMALL) + 4.0 > WIDTH;
            @let (x, anchor) = if is_end { (to, "end") } else { (from + 4.0, "start") };
            g.lost {
                title { (text) ", " (spike::us(stretch.to_ns.saturating_sub(stretch.from_ns))) }
                rect x=(px(from)) y=(px(lanes.0)) width=(px(to - from))
                    height=(px(top + HEIGHT - lanes.0)) {}
                path.hatch d=(hatch(from, to, lanes.0, lanes.1)) {}
                @if from >= last {
                    text.halo x=(px(x)) y=(px(top + 13.0)) text-anchor=(anchor) { (text) }
                    ({ last = from + width(&text, SMALL) + 10.0; Markup::default() })
                }
            }
        }
    }
}

fn lost_text(count: Option<u64>) -> String {
    match count {
        Some(count) => rtproof_judge::units::count(count, "event"),
        None => "events not recorded".into(),
    }
}

/// What another CPU did: a mark and its words.
fn row(layout: &Layout<'_>, moment: &Moment, is_first: bool, top: f64) -> Markup {
    let x = layout.axis.at(moment.at_ns);
    let room = (RIGHT - LEFT) * 0.9;
    let text = fitted(&moment.text, room, SMALL).unwrap_or_default();
    let is_end = x + 9.0 + width(&text, SMALL) > WIDTH;
    let (at, anchor) = if is_end { (x - 9.0, "end") } else { (x + 9.0, "start") };
    html! {
        @if is_first {
            text.lane x=(px(LEFT - 8.0)) y=(px(top + 12.0)) text-anchor="end" {
                "CPU " (moment.cpu)
            }
        }
        g.moment {
            circle cx=(px(x)) cy=(px(top + 8.0)) r="4" {}
            text.halo x=(px(at)) y=(px(top + 12.0)) text-anchor=(anchor) { (text) }
        }
    }
}
