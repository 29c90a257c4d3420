//! One late wake-up as a picture: its causes on top, named where they are, and below them what its
//! CPU did. Read from left to right: when it was due, what each stretch went into, when it ran.
//!
//! Where a stretch is too short for its name, the axis is widened there, and a bar to scale above
//! tells the true proportions.

#[cfg(test)]
mod tests;

use maud::{Markup, html};

use rtproof_judge::causes::{Explanation, Share, title};
use rtproof_trace::Window;

use super::chart::{LEFT, Path, WIDTH, px};
use crate::spike::{
    self, Axis, Bar, LaneKind, Lanes, OtherCpuMoment, Piece, bars, longest, widths,
};

/// Draws a spike. `window`: the events round it, where they were kept.
pub(crate) fn draw(id: &str, explanation: &Explanation, window: Option<&Window>) -> Markup {
    let layout = Layout::of(explanation);
    let arrow = arrow(&layout);
    let mut y = 32.0;
    let overview = (!layout.is_even).then(|| overview(&layout, &mut y));
    let causes = draw_causes(&layout, &mut y);
    let lane_top = y - CAUSES_HEIGHT;
    let lanes = window.map(|window| draw_lanes(&layout, window, &mut y));
    let axis = draw_ticks(&layout, lane_top, &mut y);
    let text = spike::sentence(explanation);
    html! {
        svg.chart.spike id=(id) role="img" aria-label=(text)
            viewBox=(format!("0 0 {} {}", px(WIDTH), px(y)))
            // No read-out under the pointer: each part has its own.
            data-x="linear 0 0 0 0 " data-y="linear 0 0 0 0 " {
            (arrow)
            @if let Some(overview) = overview { (overview) }
            (axis)
            (causes)
            @if let Some(lanes) = lanes { (lanes) }
        }
    }
}

/// The latency, measured from due to ran.
fn arrow(layout: &Layout<'_>) -> Markup {
    let (from, to) = (layout.axis.at(layout.due_ns()), layout.axis.at(layout.ran_ns()));
    let y = 22.0;
    let text = format!("{} late", spike::us(layout.explanation.wake.latency_ns()));
    let mut ends = Path::default();
    ends.to(from, y - 6.0).down(y + 6.0).to(to, y - 6.0).down(y + 6.0);
    ends.to(from + 7.0, y - 4.0).line(from, y).line(from + 7.0, y + 4.0);
    ends.to(to - 7.0, y - 4.0).line(to, y).line(to - 7.0, y + 4.0);
    ends.to(from, y).across(to);
    html! {
        g.measure {
            path d=(ends.finish()) {}
            text.strong x=(px(f64::midpoint(from, to))) y="14" text-anchor="middle" { (text) }
        }
    }
}

// The first lane: what each stretch went into, with its name in it or, where it is too narrow, on
// a leader line above.

/// Height of the lane: three lines of text.
const CAUSES_HEIGHT: f64 = 58.0;

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
fn draw_causes(layout: &Layout<'_>, y: &mut f64) -> Markup {
    let above = above(layout, y);
    let top = *y;
    *y += CAUSES_HEIGHT;
    html! {
        text.lane x=(px(LEFT - 8.0)) y=(px(top + CAUSES_HEIGHT / 2.0 + 4.5)) text-anchor="end" {
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
    let first = top + CAUSES_HEIGHT / 2.0 + 7.0 - 8.5 * (lines.len().max(1) as f64 - 1.0);
    let thin = if to - from < THIN { " thin" } else { "" };
    let halo = if share.is_certain() { "halo" } else { "halo wide" };
    html! {
        g class={ "span " (spike::class(&share.cause)) (thin) } {
            title { (cause_tip(layout, bar, share)) }
            (rect(from, to, top, CAUSES_HEIGHT))
            g.band { (rect(from, to, top, 4.0)) }
            @if !share.is_certain() { path.hatch d=(hatch(from, to, top, top + CAUSES_HEIGHT)) {} }
            @for (i, (line, class)) in lines.iter().enumerate() {
                text class=(format!("{class} {halo}")) x=(px(f64::midpoint(from, to)))
                    y=(px(first + 17.0 * i as f64)) text-anchor="middle" { (line) }
            }
        }
    }
}

/// A rectangle that can be seen however narrow, with a gap to the next one.
fn rect(from: f64, to: f64, top: f64, height: f64) -> Markup {
    let gap = if to - from > 3.0 { 1.0 } else { 0.0 };
    html! {
        rect x=(px(from)) y=(px(top)) width=(px((to - from - gap).max(1.0))) height=(px(height)) {}
    }
}

fn cause_tip(layout: &Layout<'_>, bar: &Bar, share: &Share) -> String {
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
fn hatch(from: f64, to: f64, top: f64, bottom: f64) -> String {
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
    let places = place_names(&extents, WIDTH - 4.0);
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
fn overview(layout: &Layout<'_>, y: &mut f64) -> Markup {
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
                    title { (cause_tip(layout, bar, share)) }
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

// The lanes below the causes: tasks on the late CPU, its interrupts and softirqs, lost stretches
// of its events, and what other CPUs did to it.

/// Height of a lane, and from lane to lane.
const LANE_HEIGHT: f64 = 18.0;

const STEP: f64 = 22.0;

/// Pieces that begin nearer than this to one before, and are narrower, are not drawn.
const NEAR: f64 = 1.5;

/// Draws the lanes; moves `y` below them.
fn draw_lanes(layout: &Layout<'_>, window: &Window, y: &mut f64) -> Markup {
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
    let bottom = *y - (STEP - LANE_HEIGHT);
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
                title { (lane_tip(layout, piece)) }
                (rect(*from, *to, top, LANE_HEIGHT))
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

const fn class(kind: LaneKind) -> &'static str {
    match kind {
        LaneKind::Late => "late",
        LaneKind::Task => "s1",
        LaneKind::Idle => "idle",
        LaneKind::Interrupt => "s0",
        LaneKind::Softirq => "s2",
    }
}

fn lane_tip(layout: &Layout<'_>, piece: &Piece) -> String {
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
                    height=(px(top + LANE_HEIGHT - lanes.0)) {}
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
fn row(layout: &Layout<'_>, moment: &OtherCpuMoment, is_first: bool, top: f64) -> Markup {
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

// Positions in the picture of a spike.

/// Widest culprit that a bar is widened for.
const CULPRIT_MAX: f64 = 118.0;

/// Free space in a bar, left and right of its texts together.
const PAD: f64 = 12.0;

/// Right edge of the plot.
const RIGHT: f64 = WIDTH - 14.0;

/// Most bars: beyond, they are merged to columns.
const BARS_MAX: usize = 240;

/// Time shown before it was due and after it ran, in percent of the latency.
const MARGINS: (u64, u64) = (6, 4);

/// Least width of a bar that is named from above, and of one that is not named.
const LEAST: (f64, f64) = (9.0, 3.0);

/// Positions that the parts of the picture share.
struct Layout<'a> {
    explanation: &'a Explanation,
    bars: Vec<Bar>,
    /// By share: the bar that carries its name.
    named: Vec<Option<usize>>,
    axis: Axis,
    /// Whether equal distances are equal times.
    is_even: bool,
}

impl<'a> Layout<'a> {
    fn of(explanation: &'a Explanation) -> Self {
        let bars = bars(explanation, BARS_MAX);
        let named = longest(&bars, explanation.shares.len());
        let even = Axis::even(ends_ns(explanation), (LEFT, RIGHT));
        let mut layout = Self { explanation, bars, named, axis: even, is_even: true };
        let fits = |layout: &Self| {
            let named = layout.named.iter().enumerate();
            named
                .filter_map(|(share, bar)| Some((share, layout.width((*bar)?))))
                .all(|(share, width)| width >= needed(&layout.explanation.shares[share]))
        };
        if !fits(&layout) {
            layout.axis = layout.widened();
            layout.is_even = false;
        }
        layout
    }

    /// Width of a bar.
    fn width(&self, bar: usize) -> f64 {
        let bar = &self.bars[bar];
        self.axis.at(bar.to_ns) - self.axis.at(bar.from_ns)
    }

    /// An axis on which as many shares as possible have room for their name.
    fn widened(&self) -> Axis {
        let (from_ns, to_ns) = ends_ns(self.explanation);
        let (due, ran) = (self.axis.at(self.due_ns()), self.axis.at(self.ran_ns()));
        let room = ran - due;
        let unnamed = LEAST.1.min(room * 0.25 / self.bars.len().max(1) as f64);
        let mut least = vec![unnamed; self.bars.len()];
        let mut left = room * 0.85 - unnamed * self.bars.len() as f64;
        // The largest shares are named first; what has no room is named from above.
        let shares = self.named.iter().zip(&self.explanation.shares);
        for (bar, share) in shares.filter_map(|(bar, share)| Some(((*bar)?, share))) {
            let wants = needed(share);
            least[bar] = if wants <= left { wants } else { LEAST.0.min(left.max(unnamed)) };
            left -= least[bar];
        }
        let durations: Vec<u64> = self.bars.iter().map(Bar::ns).collect();
        let mut knots = vec![(from_ns, LEFT), (self.due_ns(), due)];
        let mut at = due;
        for (bar, width) in self.bars.iter().zip(widths(&durations, &least, room)) {
            at += width;
            knots.push((bar.to_ns, at));
        }
        knots.push((to_ns, RIGHT));
        knots.sort_by_key(|knot| knot.0);
        knots.dedup_by_key(|knot| knot.0);
        Axis::through(knots)
    }

    const fn due_ns(&self) -> u64 {
        self.explanation.wake.due_ns
    }

    fn ran_ns(&self) -> u64 {
        self.explanation.wake.ran_ns.max(self.due_ns())
    }
}

/// First and last time of the picture.
fn ends_ns(explanation: &Explanation) -> (u64, u64) {
    let wake = &explanation.wake;
    let of = |percent: u64| (wake.latency_ns() / 100).saturating_mul(percent).max(1);
    let to_ns = wake.ran_ns.max(wake.due_ns).saturating_add(of(MARGINS.1));
    (wake.due_ns.saturating_sub(of(MARGINS.0)), to_ns)
}

/// Width that a share's bar needs for its name, its culprit as far as usual, and its time.
fn needed(share: &Share) -> f64 {
    let name = width(&spike::short(&share.cause), SIZE);
    let time = width(&spike::us(share.ns), SIZE);
    name.max(time).max(width(&share.culprit, SIZE).min(CULPRIT_MAX)) + PAD
}

// Texts in the picture of a spike: how wide they are, what of them fits, and where names with
// leader lines go so that neither runs through the other.

/// Size of names, and of what is written in thin lanes.
const SIZE: f64 = 13.0;

/// Size of texts in thin lanes.
const SMALL: f64 = 11.5;

/// Width of a text, rather too wide: of a font of wide letters (DejaVu Sans), so that narrower
/// ones fit, too.
fn width(text: &str, size: f64) -> f64 {
    let em = |c: char| match c {
        '\u{202f}' => 0.25,
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '|' | '!' | '\'' | ' ' => 0.35,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' => 0.42,
        'm' | 'M' | 'W' | '%' | '@' | '…' => 1.0,
        'w' | 'N' | 'O' | 'Q' | 'G' | 'D' | 'H' | '<' | '>' | '_' => 0.84,
        c if c.is_ascii_uppercase() => 0.7,
        c if c.is_ascii_digit() => 0.64,
        c if c.is_ascii() || c == 'µ' => 0.63,
        _ => 1.0,
    };
    text.chars().map(em).sum::<f64>() * size
}

/// A text cut to a width; `None` where not even four characters are left.
fn fitted(text: &str, room: f64, size: f64) -> Option<String> {
    if width(text, size) <= room {
        return Some(text.into());
    }
    let room = room - width("…", size);
    let mut used = 0.0;
    let cut: String = text
        .chars()
        .take_while(|c| {
            used += width(c.encode_utf8(&mut [0; 4]), size);
            used <= room
        })
        .collect();
    let cut = cut.trim_end();
    (cut.chars().count() >= 4).then(|| format!("{cut}…"))
}

/// Where a name with a leader line goes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    /// Row: 0 is the nearest to what is named.
    row: usize,
    /// The text ends at its leader, else it starts there.
    is_end: bool,
}

/// Places names at `(x, width)`: those with room to their right start at their leader; the others,
/// and whatever lies under their texts, end there. No text meets another, nor another's leader.
fn place_names(names: &[(f64, f64)], right: f64) -> Vec<Place> {
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by(|&a, &b| names[a].0.total_cmp(&names[b].0).then(a.cmp(&b)));
    let mut is_end = vec![false; names.len()];
    let mut reach = f64::INFINITY;
    for &i in order.iter().rev() {
        let (x, width) = names[i];
        if x + width > right || x > reach - GAP {
            is_end[i] = true;
            reach = reach.min(x - width);
        }
    }
    // Those that end at their leader from the left, then the others from the right: a row beyond
    // all before is always free, so that the search ends.
    let ends = order.iter().filter(|&&i| is_end[i]);
    let starts = order.iter().rev().filter(|&&i| !is_end[i]);
    let mut places = vec![Place { row: 0, is_end: false }; names.len()];
    let mut placed: Vec<Placed> = Vec::new();
    for &i in ends.chain(starts) {
        let (x, width) = names[i];
        let (from, to) = if is_end[i] { (x - width, x) } else { (x, x + width) };
        let is_free = |row: &usize| placed.iter().all(|other| other.allows(x, from, to, *row));
        let row = (0..=names.len()).find(is_free).unwrap_or(names.len());
        placed.push(Placed { x, from, to, row });
        places[i] = Place { row, is_end: is_end[i] };
    }
    places
}

/// Free space round texts and leaders.
const GAP: f64 = 6.0;

struct Placed {
    x: f64,
    from: f64,
    to: f64,
    row: usize,
}

impl Placed {
    /// Whether another name may go to a row beside this one.
    fn allows(&self, x: f64, from: f64, to: f64, row: usize) -> bool {
        let meet = from < self.to + GAP && self.from < to + GAP;
        let inside = |x: f64, from: f64, to: f64| x > from + 0.5 && x < to - 0.5;
        match row.cmp(&self.row) {
            std::cmp::Ordering::Equal => !meet,
            std::cmp::Ordering::Greater => !inside(x, self.from, self.to),
            std::cmp::Ordering::Less => !inside(self.x, from, to),
        }
    }
}

// The axis of a spike: times after it was due, and the steps of the wake-up as lines through all
// lanes, named below.

/// Draws axis and steps; the lines begin at `top`. Moves `y` below them.
fn draw_ticks(layout: &Layout<'_>, top: f64, y: &mut f64) -> Markup {
    *y += 5.0;
    let base = *y;
    let ticks = if layout.is_even { even(layout) } else { ends(layout) };
    *y = base + 22.0;
    let steps = steps(layout, top, y);
    html! {
        (steps)
        g.axis {
            line.base x1=(px(LEFT)) x2=(px(RIGHT)) y1=(px(base)) y2=(px(base)) {}
            @for (x, text) in &ticks {
                line.grid x1=(px(*x)) x2=(px(*x)) y1=(px(top)) y2=(px(base + 4.0)) {}
                text.halo x=(px(*x)) y=(px(base + 17.0)) text-anchor="middle" { (text) }
            }
            text.lane x=(px(LEFT - 8.0)) y=(px(base + 17.0)) text-anchor="end" {
                (if layout.is_even { "µs" } else { "µs, uneven" })
            }
        }
    }
}

/// Round times, where equal distances are equal times.
fn even(layout: &Layout<'_>) -> Vec<(f64, String)> {
    let length_us = layout.explanation.wake.latency_ns() as f64 / 1000.0;
    let raw = (length_us / 7.0).max(0.1);
    let power = 10_f64.powf(raw.log10().floor());
    let step_us = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|step| *step >= raw);
    let step_ns = (step_us.unwrap_or(raw) * 1000.0).round().max(1.0) as u64;
    let times = (0..20).map(|i| i * step_ns).take_while(|&ns| ns as f64 <= length_us * 1000.0);
    let text = |ns: u64| match ns % 1000 {
        0 => rtproof_judge::units::grouped(ns / 1000),
        _ => spike::us_number(ns),
    };
    times.map(|ns| (layout.axis.at(layout.due_ns() + ns), text(ns))).collect()
}

/// Where bars end, as far as their times have room: the whole first.
fn ends(layout: &Layout<'_>) -> Vec<(f64, String)> {
    let mut times = vec![layout.due_ns(), layout.ran_ns()];
    let named = layout.named.iter().flatten().map(|&bar| &layout.bars[bar]);
    times.extend(named.flat_map(|bar| [bar.from_ns, bar.to_ns]));
    let mut shown: Vec<(f64, String)> = Vec::new();
    for at_ns in times {
        let text = match at_ns.saturating_sub(layout.due_ns()) {
            0 => "0".into(),
            after_ns => spike::us_number(after_ns),
        };
        let x = layout.axis.at(at_ns);
        let is_free = |(other, other_text): &(f64, String)| {
            let both = width(other_text, SIZE) + width(&text, SIZE);
            (other - x).abs() > both / 2.0 + 5.0
        };
        if shown.iter().all(is_free) {
            shown.push((x, text));
        }
    }
    shown
}

fn steps(layout: &Layout<'_>, top: f64, y: &mut f64) -> Markup {
    let due_ns = layout.due_ns();
    let name = |(name, at_ns): (&str, u64)| match at_ns.checked_sub(due_ns) {
        Some(0) => name.to_owned(),
        Some(after_ns) => format!("{name} {}", spike::us_number(after_ns)),
        None => format!("{name} −{}", spike::us_number(due_ns - at_ns)),
    };
    let steps: Vec<(f64, String)> = spike::steps(layout.explanation)
        .into_iter()
        .map(|step| (layout.axis.at(step.1), name(step)))
        .collect();
    let extents: Vec<(f64, f64)> =
        steps.iter().map(|(x, text)| (*x, width(text, SIZE) + 4.0)).collect();
    let places = place_names(&extents, WIDTH - 2.0);
    let rows = places.iter().map(|place| place.row + 1).max().unwrap_or(0);
    let first = *y + 14.0;
    *y = first + (rows as f64 - 1.0) * ROW + 8.0;
    html! {
        g.steps {
            @for ((x, text), place) in steps.iter().zip(&places) {
                @let base = first + place.row as f64 * ROW;
                @let at = if place.is_end { x - 4.0 } else { x + 4.0 };
                line x1=(px(*x)) x2=(px(*x)) y1=(px(top - 3.0)) y2=(px(base + 2.0)) {}
                text x=(px(at)) y=(px(base))
                    text-anchor=(if place.is_end { "end" } else { "start" }) { (text) }
            }
        }
    }
}

#[cfg(test)]
mod text_tests {
    use super::*;

    #[test]
    fn texts_are_cut_where_they_do_not_fit() {
        assert_eq!(fitted("idle", 40.0, SIZE).as_deref(), Some("idle"));
        assert_eq!(fitted("multipathd [RR 99]", 80.0, SIZE).as_deref(), Some("multipath…"));
        assert_eq!(fitted("multipathd", 20.0, SIZE), None);
    }

    #[test]
    fn names_meet_neither_each_other_nor_a_leader() {
        let dense: Vec<(f64, f64)> =
            (0..12).map(|i| (500.0 + 40.0 * f64::from(i), 160.0)).collect();
        let same = vec![(700.0, 200.0); 3];
        let spread: Vec<(f64, f64)> =
            (0..4).map(|i| (100.0 + 200.0 * f64::from(i), 90.0)).collect();
        for names in [&dense, &spread, &same] {
            let places = place_names(names, 946.0);
            for (i, a) in places.iter().enumerate() {
                for (j, b) in places.iter().enumerate().filter(|&(j, _)| j != i) {
                    let extent = |(x, width): (f64, f64), is_end: bool| {
                        if is_end { (x - width, x) } else { (x, x + width) }
                    };
                    let (from, to) = extent(names[i], a.is_end);
                    let (other_from, other_to) = extent(names[j], b.is_end);
                    assert!(a.row != b.row || to < other_from || other_to < from, "{i} {j}");
                    let crosses = names[j].0 > from && names[j].0 < to;
                    assert!(b.row <= a.row || !crosses, "leader of {j} through {i}");
                    assert!(to <= 946.0);
                }
            }
        }
        assert!(
            place_names(&spread, 946.0).iter().all(|place| place.row == 0),
            "one row is enough"
        );
        let rows: std::collections::BTreeSet<usize> =
            place_names(&same, 946.0).iter().map(|place| place.row).collect();
        assert_eq!(rows.len(), 3);
    }
}
