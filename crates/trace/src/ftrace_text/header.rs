//! The lines of a trace that begin with `#`: tracer, latency, task, and what the columns mean.

use super::line::{Column, Columns};
use crate::{Event, How, Policy, Task, WakeUp};

/// What the header of a trace says.
#[derive(Clone, Debug, Default)]
pub struct Header {
    pub(super) tracer: String,
    pub(super) kernel: Option<String>,
    pub(super) latency_ns: Option<u64>,
    pub(super) cpu: Option<u32>,
    /// The task that was late.
    pub(super) task: Option<(i32, Task)>,
    pub(super) started: Option<String>,
    pub(super) ended: Option<String>,
    /// Entries that the text should have.
    pub(super) entries: Option<u64>,
}

/// What a text holds, in its order.
#[derive(Clone, Copy, Debug)]
pub enum Entry<'a> {
    /// An event, and what the header of its trace said.
    Event(&'a Event, &'a Header),
    /// Events of this CPU are missing here.
    Lost(u32),
}

impl Header {
    /// A line without its `#`.
    pub(super) fn line(&mut self, line: &str, columns: &mut Columns) {
        let text = line.trim().trim_start_matches('|').trim();
        if let Some(rest) = text.strip_prefix("entries-in-buffer/entries-written:") {
            self.entries = rest.trim().split('/').next().and_then(|count| count.parse().ok());
            return;
        }
        if let Some(name) = text.strip_prefix("tracer:") {
            name.trim().clone_into(&mut self.tracer);
            // Two traces in one text: the legend of the second counts.
            *columns = Columns::default();
        } else if let Some((name, kernel)) = text.split_once(" latency trace v") {
            if self.tracer.is_empty() {
                name.trim().clone_into(&mut self.tracer);
            }
            self.kernel = kernel.split_once(" on ").map(|(_, kernel)| kernel.trim().to_owned());
        } else if let Some(rest) = text.strip_prefix("latency:") {
            self.latency(rest);
        } else if let Some(rest) = text.strip_prefix("task:") {
            self.task = task(rest.trim());
        } else if let Some(name) = text.strip_prefix("=> started at:") {
            self.started = Some(name.trim().to_owned());
        } else if let Some(name) = text.strip_prefix("=> ended at:") {
            self.ended = Some(name.trim().to_owned());
        } else if let Some((before, name)) = line.split_once("=> ")
            && before.trim_end().ends_with(['-', '='])
        {
            columns.add(Column::named(name.trim()));
        }
    }

    /// `1689 us, #6/6, CPU#0 | (M:preempt_rt VP:0, KP:0, SP:0 HP:0 #P:4)`
    fn latency(&mut self, text: &str) {
        // The latency-format of other tracers has the line, too, with what an earlier one found.
        let keeps =
            self.tracer.is_empty() || self.tracer.starts_with("wakeup") || self.is_section();
        let us = text.split_whitespace().next().and_then(|us| us.parse::<u64>().ok());
        self.latency_ns = us.filter(|_| keeps).and_then(|us| us.checked_mul(1_000));
        let cpu = text.split_once("CPU#").map(|(_, rest)| rest);
        let digits = cpu.and_then(|cpu| cpu.split(|c: char| !c.is_ascii_digit()).next());
        self.cpu = digits.and_then(|digits| digits.parse().ok());
        let entries = text.split_once(", #").and_then(|(_, rest)| rest.split('/').next());
        self.entries = entries.and_then(|count| count.parse().ok());
    }

    /// The wake-up or section that the header is about, as if it ended with the text.
    pub(super) fn subject(&self, end_ns: u64) -> Option<WakeUp> {
        let (latency_ns, cpu) = (self.latency_ns?, self.cpu?);
        let how = if self.is_section() { How::Section } else { How::Woken };
        let tid = self.task.as_ref().map_or(-1, |(tid, _)| *tid);
        let due_ns = end_ns.saturating_sub(latency_ns);
        Some(WakeUp { tid, cpu, due_ns, ran_ns: due_ns + latency_ns, how })
    }

    /// Whether it is a tracer that keeps the longest section with interrupts or preemption off.
    pub(super) fn is_section(&self) -> bool {
        matches!(self.tracer.as_str(), "irqsoff" | "preemptoff" | "preemptirqsoff")
    }
}

/// `cyclictest-217 (uid:0 nice:0 policy:1 rt_prio:99)`
fn task(text: &str) -> Option<(i32, Task)> {
    let (who, rest) = text.rsplit_once(" (")?;
    let (comm, tid) = who.rsplit_once('-')?;
    let value = |key: &str| {
        let words = rest.trim_end_matches(')').split_whitespace();
        words.filter_map(|word| word.split_once(':')).find(|(name, _)| *name == key)?.1.parse().ok()
    };
    let policy = value("policy").and_then(|number: i32| {
        Some(match number {
            0 => Policy::Other,
            1 => Policy::Fifo,
            2 => Policy::Rr,
            3 => Policy::Batch,
            5 => Policy::Idle,
            6 => Policy::Deadline,
            _ => return None,
        })
    });
    let rt_priority = value("rt_prio").and_then(|priority| u32::try_from(priority).ok());
    let task = Task {
        comm: comm.to_owned(),
        policy,
        rt_priority: rt_priority.unwrap_or(0),
        nice: value("nice").unwrap_or(0),
        ..Task::default()
    };
    Some((tid.trim().parse().ok()?, task))
}
