//! Every spike as a dot: when it was, how late, and by its colour the class of its cause. The worst
//! have a text each, those that the page explains a link; of very many the rest is drawn, no more.

use std::collections::BTreeSet;

use maud::{Markup, html};
use rtproof_judge::{causes::kind, report::Report, units};
use rtproof_record::Run;

use super::{
    Path,
    bins::TimeBins,
    events::Events,
    frame::{About, Frame},
    heat::over_time,
    labels, px,
    scale::Scale,
};
use crate::spike;

/// Dots that have a text of their own, at most: the worst.
const TOLD_MAX: usize = 400;
/// Places of the others, at most: dots at one place are drawn once.
const REST_MAX: usize = 3_000;
/// Radius of a dot.
const RADIUS: &str = "4";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dot {
    /// When it was due.
    pub(crate) at_ns: u64,
    pub(crate) latency_ns: u64,
    pub(crate) cpu: u32,
    /// Cause; empty: not explained.
    pub(crate) cause: String,
    /// Who; may be empty.
    pub(crate) culprit: String,
    /// Its number, where the page has its picture.
    pub(crate) picture: Option<u32>,
}

impl Dot {
    /// In a line: `12.345 s, CPU 3: 1.2 ms, preempted by a task: rustc`.
    pub(crate) fn text(&self) -> String {
        let ms = self.at_ns / 1_000_000;
        let at = format!("{}.{:03} s", units::grouped(ms / 1000), ms % 1000);
        format!("{at}, CPU {}: {}, {}", self.cpu, units::ns(self.latency_ns), self.why())
    }

    pub(crate) fn why(&self) -> String {
        let who =
            if self.culprit.is_empty() { String::new() } else { format!(": {}", self.culprit) };
        match self.cause.as_str() {
            "" => "not explained".into(),
            cause => format!("{}{who}", rtproof_judge::causes::title(cause)),
        }
    }

    /// Class of its colour.
    pub(crate) fn class(&self) -> &'static str {
        spike::class(&self.cause)
    }
}

/// The dots of a run, worst first. `shown`: numbers of spikes whose pictures the page has.
pub(crate) fn of(run: &Run, report: &Report, shown: usize) -> Vec<Dot> {
    let pictures: Vec<(u32, u64, u32)> = report
        .spikes
        .iter()
        .flat_map(|spikes| spikes.worst.iter().take(shown))
        .map(|spike| (spike.explanation.wake.cpu, spike.at_ns, spike.number))
        .collect();
    let cpu_of = |number: u32| {
        let thread = run.threads.iter().find(|thread| thread.info.number == number);
        thread.map_or(number, |thread| thread.info.cpu)
    };
    let spikes = run.spikes.iter().flat_map(|spikes| &spikes.list);
    let mut dots: Vec<Dot> = spikes
        .map(|spike| {
            let cpu = cpu_of(spike.thread);
            let (cause, culprit) = match &spike.why {
                None => (String::new(), String::new()),
                Some(why) => (why.cause.clone(), why.culprit.clone()),
            };
            let is_it = |of: &&(u32, u64, u32)| (of.0, of.1) == (cpu, spike.due_ns);
            Dot {
                at_ns: spike.due_ns,
                latency_ns: spike.latency_ns,
                cpu,
                cause,
                culprit,
                picture: pictures.iter().find(is_it).map(|of| of.2),
            }
        })
        .collect();
    if run.spikes.is_none() {
        // Nothing looked for causes; the largest samples are known all the same.
        dots = report
            .top
            .iter()
            .map(|top| Dot {
                at_ns: top.due_ns,
                latency_ns: top.latency_ns,
                cpu: top.cpu,
                cause: String::new(),
                culprit: String::new(),
                picture: None,
            })
            .collect();
    }
    dots.sort_by_key(|dot| (std::cmp::Reverse(dot.latency_ns), dot.at_ns, dot.cpu));
    dots
}

/// Draws them; there is at least one.
pub(crate) fn draw(
    run: &Run,
    dots: &[Dot],
    time: TimeBins,
    events: &Events,
    text: (&str, &str),
) -> Markup {
    let frame = frame(run, dots, time, events);
    let (told, rest): (Vec<_>, Vec<_>) = {
        let is_told = |at: usize, dot: &Dot| at < TOLD_MAX || dot.picture.is_some();
        let (told, rest): (Vec<_>, Vec<_>) =
            dots.iter().enumerate().partition(|(at, dot)| is_told(*at, dot));
        (told.into_iter().map(|t| t.1).collect(), rest.into_iter().map(|t| t.1).collect())
    };
    let about =
        About { id: "chart-spikes", title: text.0, text: text.1, series: 1, units: ("time", "ns") };
    let body = html! {
        (frame.y_axis(&frame.y.latency_ticks(6.0), "latency"))
        (frame.x_axis(&frame.x.time_ticks(10), "time since the first wake-up"))
        (labels::phases(&events.above(&frame), &run.options.phases))
        (events.lanes(&frame))
        g.plot {
            (events.lines(&frame))
            g.series.dots data-cpu="all" {
                (dust(&frame, &rest))
                // The worst last, so that they lie on top.
                @for dot in told.into_iter().rev() { (draw_one(&frame, dot)) }
            }
        }
        (frame.budget_level(run.options.requirement.budget_ns))
    };
    // Not an image: it has links.
    frame.root_as("group", about, &body)
}

fn frame(run: &Run, dots: &[Dot], time: TimeBins, events: &Events) -> Frame {
    let high = dots.iter().map(|dot| dot.latency_ns).max().unwrap_or(1).max(1) as f64;
    let low = dots.iter().map(|dot| dot.latency_ns).min().unwrap_or(1).max(1) as f64;
    // The budget is in the picture wherever it is not out of all proportion.
    let budget = run.options.requirement.budget_ns.map(|ns| ns as f64);
    let budget = budget.filter(|&ns| ns > low / 30.0 && ns < high * 30.0);
    let (low, high) = budget.map_or((low, high), |ns| (low.min(ns), high.max(ns)));
    let y = Scale::Log { low: low / 1.35, high: high * 1.35 };
    let lanes = events.height();
    Frame::wide(300.0 + lanes, 40.0 + lanes, over_time(time), y)
}

fn draw_one(frame: &Frame, dot: &Dot) -> Markup {
    let (x, y) = (px(frame.px_x(dot.at_ns as f64)), px(frame.px_y(dot.latency_ns as f64)));
    let text = dot.text();
    let circle = html! { ellipse cx=(x) cy=(y) rx=(RADIUS) ry=(RADIUS) {} };
    match dot.picture {
        None => {
            html! {
                g class={ "dot " (dot.class()) } data-t=(dot.at_ns) { title { (text) } (circle) }
            }
        }
        Some(number) => html! {
            a class={ "dot shown " (dot.class()) } data-t=(dot.at_ns)
                href={ "#spike-" (number) } aria-label=(text) {
                title { (text) }
                (circle)
            }
        },
    }
}

/// The dots that are only drawn, a path for each class: a point is a stroke of no length.
fn dust(frame: &Frame, dots: &[&Dot]) -> Markup {
    let mut places = BTreeSet::new();
    for dot in dots {
        if places.len() == REST_MAX {
            break;
        }
        let at = |value: f64| value.round() as i64;
        places.insert((
            dot.class(),
            at(frame.px_x(dot.at_ns as f64)),
            at(frame.px_y(dot.latency_ns as f64)),
        ));
    }
    let mut classes: Vec<&str> = places.iter().map(|place| place.0).collect();
    classes.dedup();
    html! {
        @for class in classes {
            path class={ "dust " (class) } d=({
                let mut path = Path::default();
                for place in places.iter().filter(|place| place.0 == class) {
                    path.to(place.1 as f64, place.2 as f64).across(place.1 as f64);
                }
                path.finish()
            }) {}
        }
    }
}

/// Classes of causes that are there, most dots first: colour, name, dots.
pub(crate) fn classes(dots: &[Dot]) -> Vec<(&'static str, &'static str, usize)> {
    let mut classes: Vec<(&'static str, &'static str, usize)> = Vec::new();
    for dot in dots {
        let class = dot.class();
        match classes.iter_mut().find(|of| of.0 == class) {
            Some(of) => of.2 += 1,
            None => classes.push((class, spike::kind_name(kind(&dot.cause)), 1)),
        }
    }
    classes.sort_by_key(|of| std::cmp::Reverse(of.2));
    classes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::sample::{self, Shape};

    fn dot(at_ns: u64, latency_ns: u64, cause: &str) -> Dot {
        let culprit = "<script>alert(1)</script>".into();
        Dot { at_ns, latency_ns, cpu: 2, cause: cause.into(), culprit, picture: None }
    }

    fn drawn(dots: &[Dot]) -> String {
        let run = sample::run(&Shape { seconds: 3, ..Shape::default() });
        draw(&run, dots, TimeBins::of(&run), &Events::default(), ("t", "x")).into_string()
    }

    #[test]
    fn names_in_titles_stay_text() {
        let shown = Dot { picture: Some(7), ..dot(1, 5_000_000, "irq") };
        let page = drawn(&[shown, dot(2_000_000_000, 80_000, "stall")]);
        assert!(!page.contains("<script"), "{page}");
        assert_eq!(page.matches("&lt;script&gt;").count(), 3);
        assert!(page.contains("class=\"dot shown s0\" data-t=\"1\" href=\"#spike-7\""));
        assert!(page.contains("class=\"dot s3\""));
    }

    #[test]
    fn of_very_many_the_worst_have_a_text_and_the_picture_stays_small() {
        let mut dots: Vec<Dot> =
            (0..50_000).map(|i| dot(i * 59_000, 90_000 + i * 13 % 7_000_000, "irq")).collect();
        dots.sort_by_key(|dot| std::cmp::Reverse(dot.latency_ns));
        dots.last_mut().unwrap().picture = Some(3);
        let page = drawn(&dots);
        assert_eq!(page.matches("<title>").count(), TOLD_MAX + 1 + 3, "dots and phases");
        assert!(page.contains("#spike-3") && page.len() < 200_000, "{}", page.len());
        assert!(!page.contains("NaN"));
    }

    #[test]
    fn without_causes_the_largest_samples_are_dots() {
        let run = sample::run(&Shape { seconds: 3, ..Shape::default() });
        let report = sample::report(&run);
        let dots = of(&run, &report, 12);
        assert_eq!(dots.len(), report.top.len());
        assert_eq!(classes(&dots), [("grey", "not explained", dots.len())]);
    }
}
