//! Where each panel stands: for drawing, and for finding what was clicked.

use ratatui_core::layout::Rect;
use rtproof_results::watch::{Frame, Kind};

use super::{
    cells::shown,
    view::{Panel, View},
};

/// Lines of the title, and of the keys.
const TITLE: u16 = 2;
const FOOTER: u16 = 1;
/// Fewest and most lines of a histogram, with its axis.
const HISTOGRAM: (u16, u16) = (5, 12);
/// Rows that a list is worth at least.
const LIST_MIN: u16 = 4;

/// The panels of the main page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Regions {
    pub latency: Option<Rect>,
    pub histogram: Option<Rect>,
    /// CPUs; its last line is about the chosen one.
    pub cpus: Rect,
    /// Spikes; its last line is about the chosen one.
    pub spikes: Option<Rect>,
    pub tasks: Rect,
}

/// A row of a panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub panel: Panel,
    /// Row of its list; `None`: its head or another line.
    pub row: Option<usize>,
}

/// Lines that all of a frame takes.
pub(super) fn height(frame: &Frame) -> u16 {
    let lines = |n: usize| u16::try_from(n.min(500)).unwrap_or(500);
    let tasks = frame.tasks.as_ref().map_or(1, Vec::len);
    let all = frame.cpus.len() + tasks + 6;
    let measured = frame.latencies.len() + frame.spikes.len().max(1) + 4;
    let measured = if frame.source.kind == Kind::Passive { 0 } else { measured };
    let histogram = if frame.histogram.is_empty() { 0 } else { HISTOGRAM.1 };
    TITLE + FOOTER + lines(all) + lines(measured) + histogram
}

/// Shares the lines of a screen out.
pub fn regions(frame: &Frame, view: &View, area: Rect) -> Regions {
    let lines = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
    let mut left = area.height.saturating_sub(TITLE + FOOTER);
    let mut y = area.y + TITLE;
    let mut take = |height: u16| {
        let rect = Rect::new(area.x, y, area.width, height);
        y += height;
        rect
    };
    let all_cpus = lines(view.cpus(frame).len()).saturating_add(2);
    let all_tasks = lines(view.tasks(frame).len().max(1)).saturating_add(1);
    if frame.source.kind == Kind::Passive {
        let most = left.saturating_sub(LIST_MIN.min(all_tasks)).max(left / 2);
        let cpus = all_cpus.min(most);
        left -= cpus;
        return Regions {
            latency: None,
            histogram: None,
            cpus: take(cpus),
            spikes: None,
            tasks: take(left),
        };
    }
    let quarter = left / 4;
    let latency = lines(view.latencies(frame).len().max(1)).saturating_add(1).min(quarter.max(2));
    let cpus = all_cpus.min(quarter.max(3));
    left -= latency + cpus;
    let spare = left.saturating_sub(2 * LIST_MIN);
    let histogram = match frame.histogram.is_empty() {
        false if spare >= HISTOGRAM.0 => spare.min(HISTOGRAM.1).min((left / 3).max(HISTOGRAM.0)),
        _ => 0,
    };
    left -= histogram;
    let wanted = lines(view.spikes(frame).len().max(1)).saturating_add(2);
    let spikes = wanted.max(left.saturating_sub(all_tasks)).min(left - left / 3);
    left -= spikes;
    Regions {
        latency: Some(take(latency)),
        histogram: (histogram > 0).then(|| take(histogram)),
        cpus: take(cpus),
        spikes: Some(take(spikes)),
        tasks: take(left),
    }
}

/// What stands at a place of the screen.
pub fn place(frame: &Frame, view: &View, area: Rect, x: u16, y: u16) -> Option<Place> {
    let regions = regions(frame, view, area);
    let lists = [
        (Panel::Latency, regions.latency, view.latencies(frame).len(), 1),
        (Panel::Cpus, Some(regions.cpus), view.cpus(frame).len(), 2),
        (Panel::Spikes, regions.spikes, view.spikes(frame).len(), 2),
        (Panel::Tasks, Some(regions.tasks), view.tasks(frame).len(), 1),
    ];
    let inside = |rect: &Rect| rect.contains((x, y).into());
    lists.into_iter().find_map(|(panel, rect, all, extra)| {
        let rect = rect.filter(inside)?;
        let lines = usize::from(rect.height.saturating_sub(extra));
        let range = shown(all, view.row(frame, panel), lines);
        let row = usize::from(y - rect.y).checked_sub(1).map(|line| range.start + line);
        Some(Place { panel, row: row.filter(|row| range.contains(row)) })
    })
}
