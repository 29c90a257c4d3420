//! What the user has chosen: panel, row, order, filter, page. Keys change it; nothing else does.

use std::cmp::Reverse;

use rtproof_host::CpuList;
use rtproof_results::watch::{Cpu, Frame, Latency, Spike, Task};

use super::look::Drawn;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Page {
    #[default]
    Main,
    /// Keys, and what the numbers are.
    Help,
    Picture(Vec<Drawn>),
}

/// A part of the main page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Panel {
    Latency,
    #[default]
    Cpus,
    Spikes,
    Tasks,
}

/// A text that is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// CPUs to show.
    Filter(String),
    /// A note for a moment.
    Mark(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    pub page: Page,
    /// Panel that keys move in.
    pub panel: Panel,
    /// First line of a page that scrolls.
    pub scroll: usize,
    /// CPUs that are shown; `None`: all.
    pub filter: Option<CpuList>,
    /// Whether the picture stands still.
    pub frozen: bool,
    /// What is being typed.
    pub input: Option<Input>,
    /// An answer in the last line, until the next key.
    pub message: Option<String>,
    /// Whether it is text and not a screen: nothing is chosen.
    pub(super) is_text: bool,
    pub(super) rows: [usize; 4],
    pub(super) orders: [usize; 4],
    /// The chosen spike: the list moves on under it.
    pub(super) spike: Option<(u32, u64)>,
}

/// Orders of each panel.
const ORDERS: [&[&str]; 4] = [
    &["by thread", "by worst", "by worst of the minute", "by missed"],
    &["by number", "by busy", "by interrupts", "by switches"],
    &["newest first", "worst first"],
    &["by CPU", "by priority", "by share"],
];

impl View {
    /// Of a page of text.
    pub(super) fn of_text() -> Self {
        Self { is_text: true, ..Self::default() }
    }

    /// The order of a panel in words.
    pub fn order(&self, panel: Panel) -> &'static str {
        ORDERS[panel as usize][self.orders[panel as usize]]
    }

    /// The next order of the panel, or the one before.
    pub fn sort(&mut self, forward: bool) {
        let at = self.panel as usize;
        let all = ORDERS[at].len();
        self.orders[at] = (self.orders[at] + if forward { 1 } else { all - 1 }) % all;
        self.message = Some(format!("Sorted {}.", self.order(self.panel)));
    }

    /// The next panel that the frame has.
    pub fn next_panel(&mut self, frame: &Frame, forward: bool) {
        let panels = panels(frame);
        let at = panels.iter().position(|&panel| panel == self.panel).unwrap_or(0);
        let step = if forward { 1 } else { panels.len() - 1 };
        self.panel = panels[(at + step) % panels.len()];
    }

    /// Chooses a panel and one of its rows.
    pub fn choose(&mut self, frame: &Frame, panel: Panel, row: usize) {
        self.panel = panel;
        let last = self.len(frame, panel).saturating_sub(1);
        self.rows[panel as usize] = row.min(last);
        if panel == Panel::Spikes {
            let spikes = self.spikes(frame);
            self.spike = spikes.get(row.min(last)).map(|spike| (spike.thread, spike.due_ns));
        }
    }

    /// Moves by some rows, down where it is positive; scrolls the pages that scroll.
    pub fn step(&mut self, frame: &Frame, by: isize) {
        if self.page == Page::Main {
            let row = self.row(frame, self.panel).saturating_add_signed(by);
            self.choose(frame, self.panel, row);
        } else {
            self.scroll = self.scroll.saturating_add_signed(by).min(10_000);
        }
    }

    /// The first row, where new spikes come in.
    pub fn home(&mut self, frame: &Frame) {
        self.choose(frame, self.panel, 0);
        self.scroll = 0;
        self.spike = None;
    }

    /// The row that is chosen in a panel.
    pub fn row(&self, frame: &Frame, panel: Panel) -> usize {
        let row = match (panel, self.spike) {
            (Panel::Spikes, None) => 0,
            (Panel::Spikes, Some(key)) => {
                let is = |spike: &&Spike| (spike.thread, spike.due_ns) == key;
                self.spikes(frame).iter().position(is).unwrap_or(0)
            }
            _ => self.rows[panel as usize],
        };
        row.min(self.len(frame, panel).saturating_sub(1))
    }

    /// CPU of the row that is chosen, among latencies and CPUs.
    pub fn chosen_cpu(&self, frame: &Frame) -> Option<u32> {
        let row = self.row(frame, self.panel);
        match self.panel {
            Panel::Latency => self.latencies(frame).get(row)?.cpu,
            Panel::Cpus => Some(self.cpus(frame).get(row)?.cpu),
            Panel::Spikes | Panel::Tasks => None,
        }
    }

    fn len(&self, frame: &Frame, panel: Panel) -> usize {
        match panel {
            Panel::Latency => self.latencies(frame).len(),
            Panel::Cpus => self.cpus(frame).len(),
            Panel::Spikes => self.spikes(frame).len(),
            Panel::Tasks => self.tasks(frame).len(),
        }
    }

    fn shows(&self, cpu: u32) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.contains(cpu))
    }

    /// Latencies that are shown, in their order.
    pub(super) fn latencies<'f>(&self, frame: &'f Frame) -> Vec<&'f Latency> {
        let all = frame.latencies.iter();
        let mut rows: Vec<&Latency> =
            all.filter(|of| of.cpu.is_none_or(|cpu| self.shows(cpu))).collect();
        match self.orders[Panel::Latency as usize] {
            1 => rows.sort_by_key(|of| Reverse(of.max_ns)),
            2 => rows.sort_by_key(|of| Reverse(of.minute_ns)),
            3 => rows.sort_by_key(|of| Reverse(of.missed)),
            _ => {}
        }
        rows
    }

    /// CPUs that are shown, in their order.
    pub(super) fn cpus<'f>(&self, frame: &'f Frame) -> Vec<&'f Cpu> {
        let mut rows: Vec<&Cpu> = frame.cpus.iter().filter(|of| self.shows(of.cpu)).collect();
        match self.orders[Panel::Cpus as usize] {
            1 => rows.sort_by_key(|of| Reverse(of.busy_permille)),
            2 => rows.sort_by_key(|of| Reverse(of.interrupts.as_ref().map(|rate| rate.per_s))),
            3 => rows.sort_by_key(|of| Reverse(of.switches_per_s)),
            _ => {}
        }
        rows
    }

    /// Spikes that are shown, in their order.
    pub fn spikes<'f>(&self, frame: &'f Frame) -> Vec<&'f Spike> {
        let mut rows: Vec<&Spike> = frame.spikes.iter().filter(|of| self.shows(of.cpu)).collect();
        if self.orders[Panel::Spikes as usize] == 1 {
            rows.sort_by_key(|of| Reverse(of.latency_ns));
        }
        rows
    }

    /// Tasks that are shown, in their order.
    pub(super) fn tasks<'f>(&self, frame: &'f Frame) -> Vec<&'f Task> {
        let all = frame.tasks.iter().flatten();
        let mut rows: Vec<&Task> = all.filter(|of| self.shows(of.cpu)).collect();
        match self.orders[Panel::Tasks as usize] {
            1 => rows.sort_by_key(|of| (of.outranked, Reverse(of.priority), of.tid)),
            2 => rows.sort_by_key(|of| (Reverse(of.share_permille), of.tid)),
            _ => rows.sort_by_key(|of| (of.cpu, of.outranked, of.tid)),
        }
        rows
    }
}

/// Panels that a frame has.
pub(super) fn panels(frame: &Frame) -> Vec<Panel> {
    let is_measured = frame.source.kind != rtproof_results::watch::Kind::Passive;
    let all = [Panel::Latency, Panel::Cpus, Panel::Spikes, Panel::Tasks];
    let has = |panel: &Panel| is_measured || matches!(panel, Panel::Cpus | Panel::Tasks);
    all.into_iter().filter(has).collect()
}
