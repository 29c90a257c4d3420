//! Events of the surroundings, as marks over a picture of the run: threads that were
//! changed from outside, changes of the level, periods, coincidences.
//!
//! Each sentence has a lane of its own between the load phases and the plot, with its name before
//! it and a tick for each of its moments, so that no two texts can meet; those with few moments
//! have a line through the plot as well. The sentence is the title of the lane.

use maud::{Markup, html};

use rtproof_judge::{Report, causes::Structure, units};
use rtproof_record::run::Mark;

use super::chart::{Frame, px};

/// Height of a lane.
const LANE: f64 = 17.0;

/// Lanes at most; the rest is in the text.
const LANES_MAX: usize = 8;

/// Moments of a lane that have lines through the plot, at most.
const LINES_MAX: usize = 12;

/// Width of a character of a label, about.
const CHARACTER: f64 = 6.6;

/// One sentence and its moments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    /// Name before the lane.
    name: String,
    text: String,
    /// CPU; `None`: several.
    cpu: Option<u32>,
    /// Moments: nanoseconds after the first wake-up, and a label that may be empty.
    moments: Vec<(u64, String)>,
    /// Whether its moments have lines through the plot.
    has_lines: bool,
}

/// All lanes of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventLanes {
    lanes: Vec<Lane>,
    /// Sentences with moments that have no lane.
    left_out: usize,
}

impl EventLanes {
    /// Of a report: changes from outside first, then what was found, the least likely by chance
    /// first.
    pub(crate) fn of(report: &Report) -> Self {
        let found = report.spikes.iter().flat_map(|spikes| &spikes.structure);
        let found = found.filter(|of| !of.moments.is_empty()).map(Lane::of);
        let mut lanes: Vec<Lane> = outside(report).into_iter().chain(found).collect();
        let left_out = lanes.len().saturating_sub(LANES_MAX);
        lanes.truncate(LANES_MAX);
        Self { lanes, left_out }
    }

    /// Room that they take above a plot.
    pub(crate) fn height(&self) -> f64 {
        match self.lanes.len() {
            0 => 0.0,
            n => LANE * n as f64 + 5.0,
        }
    }

    /// Whether there is any.
    pub(crate) const fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Continues the sentence of a picture, for those who do not see it.
    pub(crate) fn text(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let names: Vec<String> = self
            .lanes
            .iter()
            .map(|lane| format!("{} ({})", lane.name, units::grouped(lane.moments.len() as u64)))
            .collect();
        let more = match self.left_out {
            0 => String::new(),
            n => format!(", {n} more only in the text"),
        };
        format!(" Marked above the plot: {}{more}.", names.join(", "))
    }

    /// The frame as it is above the lanes: what is drawn at its top keeps its place.
    pub(crate) fn above(&self, frame: &Frame) -> Frame {
        Frame { top: frame.top - self.height(), ..*frame }
    }

    /// The lanes, above the plot of the frame.
    pub(crate) fn lanes(&self, frame: &Frame) -> Markup {
        let top = frame.top - self.height() + 2.0;
        html! {
            g.events {
                @for (row, lane) in self.lanes.iter().enumerate() {
                    (draw(frame, lane, top + LANE * row as f64))
                }
            }
        }
    }

    /// Lines through the plot.
    pub(crate) fn lines(&self, frame: &Frame) -> Markup {
        html! {
            g.events {
                @for lane in self.lanes.iter().filter(|lane| lane.has_lines) {
                    (line_each(frame, lane, frame.top, frame.bottom))
                }
            }
        }
    }

    /// Lines through rows of CPUs: `rows` are their CPUs, each `height` high.
    pub(crate) fn lines_of_cpus(&self, frame: &Frame, rows: &[&[u32]], height: f64) -> Markup {
        let place = |lane: &Lane| {
            let row = lane.cpu.and_then(|cpu| rows.iter().position(|cpus| cpus.contains(&cpu)));
            let of_row = row.map(|row| frame.top + row as f64 * height);
            of_row.map_or((frame.top, frame.bottom), |top| (top - 1.0, top + height))
        };
        html! {
            g.events {
                @for lane in self.lanes.iter().filter(|lane| lane.has_lines) {
                    @let (top, bottom) = place(lane);
                    (line_each(frame, lane, top, bottom))
                }
            }
        }
    }
}

fn line_each(frame: &Frame, lane: &Lane, top: f64, bottom: f64) -> Markup {
    html! {
        @for (at_ns, label) in &lane.moments {
            @let x = px(frame.px_x(*at_ns as f64));
            g.event {
                title { (title(lane, *at_ns, label)) }
                line.under x1=(x) x2=(x) y1=(px(top)) y2=(px(bottom)) {}
                line.over x1=(x) x2=(x) y1=(px(top)) y2=(px(bottom)) {}
            }
        }
    }
}

fn title(lane: &Lane, at_ns: u64, label: &str) -> String {
    let colon = if label.is_empty() { "" } else { ": " };
    format!("{}{colon}{label}. {}", at(at_ns), lane.text)
}

/// A time in seconds.
fn at(at_ns: u64) -> String {
    format!("{}.{} s", units::grouped(at_ns / 1_000_000_000), at_ns % 1_000_000_000 / 100_000_000)
}

fn draw(frame: &Frame, lane: &Lane, top: f64) -> Markup {
    let xs: Vec<f64> = lane.moments.iter().map(|moment| frame.px_x(moment.0 as f64)).collect();
    let (low, high) = (px(top + 2.0), px(top + LANE - 3.0));
    html! {
        g.lane {
            title { (lane.text) }
            rect.hit x="0" width=(px(frame.right)) y=(px(top)) height=(px(LANE)) {}
            text.name x=(px(frame.left - 7.0)) y=(px(top + 12.0)) text-anchor="end" { (lane.name) }
            line.rail x1=(px(frame.left)) x2=(px(frame.right))
                y1=(px(top + LANE - 2.5)) y2=(px(top + LANE - 2.5)) {}
            @for ((at_ns, label), x) in lane.moments.iter().zip(&xs) {
                g {
                    title { (title(lane, *at_ns, label)) }
                    line.tick x1=(px(*x)) x2=(px(*x)) y1=(low) y2=(high) {}
                }
            }
            @for (x, anchor, label) in labels(frame, &xs, &lane.moments) {
                text.label x=(px(x)) y=(px(top + 12.0)) text-anchor=(anchor) { (label) }
            }
        }
    }
}

/// Labels that have room: after their tick, or before it where there is none behind.
fn labels<'a>(
    frame: &Frame,
    xs: &[f64],
    moments: &'a [(u64, String)],
) -> Vec<(f64, &'static str, &'a str)> {
    let mut shown = Vec::new();
    let mut free = frame.left;
    for (i, (_, label)) in moments.iter().enumerate().filter(|(_, moment)| !moment.1.is_empty()) {
        let (x, width) = (xs[i], label.chars().count() as f64 * CHARACTER + 8.0);
        let next = xs.get(i + 1).copied().unwrap_or(frame.right);
        let before = if i > 0 { free.max(xs[i - 1]) } else { free };
        if x + width <= next {
            shown.push((x + 4.0, "start", label.as_str()));
            free = x + width;
        } else if x - width >= before {
            shown.push((x - 4.0, "end", label.as_str()));
            free = x;
        }
    }
    shown
}

impl Lane {
    fn of(found: &Structure) -> Self {
        let name = match found.kind.as_str() {
            "period" => {
                found.period_ns.map_or("period".into(), |ns| format!("every {}", units::ns(ns)))
            }
            "cpus" => "at once".into(),
            "phase" => of_cpu(found.cpu, "load edge"),
            "frequency" => of_cpu(found.cpu, "freq."),
            "temperature" => of_cpu(found.cpu, "temp."),
            "interrupts" => of_cpu(found.cpu, "irqs"),
            kind => of_cpu(found.cpu, kind),
        };
        let moments: Vec<_> = found.moments.iter().map(|m| (m.at_ns, m.text.clone())).collect();
        Self {
            name,
            text: format!("{}.", found.text),
            cpu: found.cpu,
            has_lines: moments.len() <= LINES_MAX && found.kind != "period",
            moments,
        }
    }
}

/// `CPU 3 level`; the number alone where there is no room for more.
fn of_cpu(cpu: Option<u32>, what: &str) -> String {
    match cpu {
        None => what.into(),
        Some(cpu) if cpu < 100 => format!("CPU {cpu} {what}"),
        Some(cpu) => format!("{cpu} {what}"),
    }
}

/// A lane for each thread that was changed from outside.
fn outside(report: &Report) -> Vec<Lane> {
    let lane = |cpu: &rtproof_judge::report::CpuReport| {
        let number = cpu.thread.number;
        let marks: Vec<&Mark> =
            report.surroundings.marks.iter().filter(|mark| mark.thread == number).collect();
        let moments: Vec<_> =
            marks.iter().map(|mark| (mark.at_ns, mark.after.replace("SCHED_", ""))).collect();
        let texts: Vec<String> = marks
            .iter()
            .take(3)
            .map(|mark| format!("from {} to {} before {}", mark.before, mark.after, at(mark.at_ns)))
            .collect();
        let more = if marks.len() > 3 { ", ..." } else { "" };
        let cpu = cpu.thread.cpu;
        let text = format!("CPU {cpu}, changed from outside: {}{more}.", texts.join(", "));
        (!moments.is_empty()).then(|| Lane {
            name: of_cpu(Some(cpu), "outside"),
            text,
            cpu: Some(cpu),
            has_lines: moments.len() <= LINES_MAX,
            moments,
        })
    };
    report.cpus.iter().filter_map(lane).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::chart::Frame;
    use crate::svg::chart::Scale;

    fn frame() -> Frame {
        Frame::wide(400.0, 60.0, Scale::from_zero(60e9), Scale::from_zero(1.0))
    }

    fn moments(seconds: &[u64]) -> Vec<(u64, String)> {
        seconds.iter().map(|s| (s * 1_000_000_000, "12 µs → 25 µs".to_owned())).collect()
    }

    #[test]
    fn labels_are_placed_where_there_is_room_and_never_overlap() {
        let frame = frame();
        for seconds in [&[1, 30][..], &[30, 31], &[59], &[10, 11, 12, 13, 20], &[0, 58, 59, 60]] {
            let moments = moments(seconds);
            let xs: Vec<f64> = moments.iter().map(|m| frame.px_x(m.0 as f64)).collect();
            let shown = labels(&frame, &xs, &moments);
            assert!(!shown.is_empty(), "{seconds:?}");
            let spans: Vec<(f64, f64)> = shown
                .iter()
                .map(|(x, anchor, label)| {
                    let width = label.chars().count() as f64 * CHARACTER;
                    if *anchor == "end" { (x - width, *x) } else { (*x, x + width) }
                })
                .collect();
            assert!(spans.windows(2).all(|two| two[0].1 <= two[1].0), "{seconds:?} {spans:?}");
            assert!(spans.iter().all(|s| s.0 >= frame.left && s.1 <= frame.right), "{spans:?}");
        }
    }

    #[test]
    fn names_fit_their_margin() {
        for (cpu, what) in [(None, "load edge"), (Some(3), "outside"), (Some(127), "outside")] {
            assert!(of_cpu(cpu, what).chars().count() <= 13);
        }
        let periods = [1_000_012_345, 63_720_464, 840_200_000_000, 999_999, 7, 0];
        for name in periods.map(|ns| format!("every {}", units::ns(ns))) {
            assert!(name.chars().count() <= 13, "{name}");
        }
    }
}
