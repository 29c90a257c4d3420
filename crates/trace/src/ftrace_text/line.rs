//! One line of a trace: task, CPU, flags, time, and the rest by its form.

use crate::event::Comm;
use crate::kernel::text::task_state;
use crate::{Event, EventData, Task, TaskPolicy, WakeUp, WakeUpBasis, event};

/// What one letter of the flags means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Irqs,
    Resched,
    ReschedLazy,
    Interrupt,
    Preempt,
    Migrate,
    /// Preemption of the fair class alone, in old PREEMPT_RT; or one that is not known.
    Ignored,
}

impl Column {
    /// By its name in the legend.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "CPU#" => return None,
            name if name.starts_with("irqs-off") => Self::Irqs,
            "need-resched" => Self::Resched,
            "need-resched-lazy" | "need-resched_lazy" => Self::ReschedLazy,
            name if name.starts_with("hardirq") => Self::Interrupt,
            "preempt-depth" => Self::Preempt,
            "migrate-disable" => Self::Migrate,
            _ => Self::Ignored,
        })
    }
}

/// The meaning of the flags, from the legend or, without one, from how many there are.
#[derive(Default)]
pub(super) struct FlagColumns(Vec<Column>);

/// A legend has at most so many lines.
const COLUMNS_MAX: usize = 16;

impl FlagColumns {
    pub(super) fn add(&mut self, column: Option<Column>) {
        if let Some(column) = column
            && self.0.len() < COLUMNS_MAX
        {
            self.0.push(column);
        }
    }

    fn of(&self, count: usize) -> &[Column] {
        use Column::{Ignored, Interrupt, Irqs, Migrate, Preempt, Resched, ReschedLazy};
        if self.0.len() == count {
            return &self.0;
        }
        match count {
            // Before 5.16 nothing reported migration.
            4 => &[Irqs, Resched, Interrupt, Preempt],
            5 => &[Irqs, Resched, Interrupt, Preempt, Migrate],
            6 => &[Irqs, Resched, ReschedLazy, Interrupt, Preempt, Migrate],
            // PREEMPT_RT up to 6.x.
            7 => &[Irqs, Resched, ReschedLazy, Interrupt, Preempt, Ignored, Migrate],
            _ => &[],
        }
    }

    /// [`Event::flags`] and [`Event::preempt`] of the letters.
    fn read(&self, letters: &str) -> (u8, u8) {
        let (mut bits, mut preempt) = (0, 0);
        for (letter, column) in letters.chars().zip(self.of(letters.len())) {
            let digit = letter.to_digit(16).map_or(0, |digit| digit as u8);
            match (column, letter) {
                (Column::Irqs, 'd') => bits |= event::flags::IRQS_OFF,
                (Column::Irqs, 'b') => bits |= event::flags::BH_OFF,
                (Column::Irqs, 'D') => bits |= event::flags::IRQS_OFF | event::flags::BH_OFF,
                (Column::Resched, 'N' | 'n' | 'B' | 'b') => bits |= event::flags::NEED_RESCHED,
                (Column::Resched, 'l' | 'L') | (Column::ReschedLazy, 'L' | 'l' | 'N' | 'n') => {
                    bits |= event::flags::NEED_RESCHED_LAZY;
                }
                (Column::Interrupt, 'Z' | 'z') => bits |= event::flags::NMI,
                (Column::Interrupt, 'h') => bits |= event::flags::HARDIRQ,
                (Column::Interrupt, 'H') => bits |= event::flags::HARDIRQ | event::flags::SOFTIRQ,
                (Column::Interrupt, 's') => bits |= event::flags::SOFTIRQ,
                (Column::Preempt, _) => preempt |= digit,
                (Column::Migrate, _) => preempt |= digit << 4,
                _ => {}
            }
        }
        (bits, preempt)
    }
}

pub(super) struct TraceLine<'a> {
    pub(super) comm: &'a str,
    pub(super) pid: i32,
    pub(super) cpu: u32,
    pub(super) at_ns: u64,
    flags: u8,
    preempt: u8,
    rest: &'a str,
}

pub(super) enum Body<'a> {
    StackBegins,
    /// As the latency tracers write it.
    Switch(EventData),
    Wakeup(EventData),
    Event {
        name: &'a str,
        fields: &'a str,
    },
    Call(&'a str),
    Unknown,
}

/// `CPU:1 [LOST 67486 EVENTS]`, or as trace-cmd writes it, `CPU:1 [67486 EVENTS DROPPED]`: which
/// CPU, how many.
pub(super) fn lost(line: &str) -> Option<(u32, u64)> {
    let at = line.find("CPU:")?;
    let (cpu, rest) = line[at + 4..].split_once(" [")?;
    let count = rest
        .strip_prefix("LOST ")
        .and_then(|rest| rest.strip_suffix(" EVENTS]"))
        .or_else(|| rest.strip_suffix(" EVENTS DROPPED]"))?;
    let count = if count == "EVENTS DROPPED" { 0 } else { count.trim().parse().ok()? };
    Some((cpu.trim().parse().ok()?, count))
}

/// Splits a line of any form.
pub(super) fn parse<'a>(line: &'a str, columns: &FlagColumns) -> Option<TraceLine<'a>> {
    // Names may have dashes and spaces: the first place counts where the rest fits.
    let dashed = line.match_indices('-').find_map(|(at, _)| {
        let comm = line[..at].trim_start();
        // trace-cmd writes the name of the buffer first.
        let comm = comm.rsplit(":  ").next().unwrap_or(comm).trim_start();
        let rest = &line[at + 1..];
        let (pid, rest) = number(rest)?;
        let pid = i32::try_from(pid).ok()?;
        let rest = rest.strip_prefix([' ', '\t'])?.trim_start();
        usual(rest, columns).or_else(|| latency(rest, columns)).map(|line| TraceLine {
            comm,
            pid,
            ..line
        })
    });
    dashed.or_else(|| perf(line)).or_else(|| verbose(line)).or_else(|| graph(line, columns))
}

/// Digits at the start, and what is behind.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// `[001] d.h3.  2400.439123: sched_waking: ...`, perhaps with the process in parentheses before
/// and without flags.
fn usual<'a>(text: &'a str, columns: &FlagColumns) -> Option<TraceLine<'a>> {
    let text = match text.strip_prefix('(') {
        Some(process) => process.split_once(')')?.1.trim_start(),
        None => text,
    };
    let (cpu, rest) = text.strip_prefix('[')?.split_once(']')?;
    let mut rest = rest.strip_prefix([' ', '\t'])?.trim_start();
    let mut letters = "";
    if !rest.starts_with(|letter: char| letter.is_ascii_digit()) || !time_is_first(rest) {
        (letters, rest) = rest.split_once([' ', '\t'])?;
    }
    let (time, rest) = rest.trim_start().split_once(':')?;
    let (flags, preempt) = columns.read(letters);
    Some(TraceLine {
        comm: "",
        pid: 0,
        cpu: cpu.trim().parse().ok()?,
        at_ns: time_ns(time.trim())?,
        flags,
        preempt,
        rest: without_difference(rest),
    })
}

/// trace-cmd's `--ts-diff` writes the time since the line before: `(+13)`.
fn without_difference(rest: &str) -> &str {
    let trimmed = rest.trim_start();
    let behind = trimmed.strip_prefix("(+").and_then(|behind| behind.split_once(')'));
    behind.map_or(rest.strip_prefix(' ').unwrap_or(rest), |(_, behind)| behind.trim_start())
}

/// `perf 27971/27972 [000] 13718.338192:    1 sched:sched_waking: ...`, of perf script.
fn perf(line: &str) -> Option<TraceLine<'_>> {
    line.match_indices(" [").find_map(|(at, _)| {
        let (comm, ids) = line[..at].trim_end().rsplit_once(|c: char| c.is_ascii_whitespace())?;
        let tid = ids.rsplit('/').next()?.parse().ok()?;
        let (cpu, rest) = line[at + 2..].split_once(']')?;
        let (time, rest) = rest.trim_start().split_once(':')?;
        let rest = rest.trim_start();
        // The period of the sample.
        let rest = match number(rest) {
            Some((_, behind)) if behind.starts_with(' ') => behind.trim_start(),
            _ => rest,
        };
        let comm = comm.trim();
        Some(TraceLine {
            comm: if tid == 0 { "<idle>" } else { comm },
            pid: tid,
            cpu: cpu.parse().ok()?,
            at_ns: time_ns(time.trim()).filter(|_| !comm.is_empty())?,
            flags: 0,
            preempt: 0,
            rest,
        })
    })
}

/// `0dn.h413    1us+: ...`: CPU and flags in one, microseconds since the trace began; trace-cmd's
/// `-l` writes the seconds of the clock instead.
fn latency<'a>(text: &'a str, columns: &FlagColumns) -> Option<TraceLine<'a>> {
    let (cpu, rest) = number(text)?;
    let (letters, rest) = rest.split_once([' ', '\t'])?;
    if letters.is_empty() {
        return None;
    }
    let rest = rest.trim_start();
    let (time, rest) = rest.split_once(':')?;
    // Behind the time stands one letter that says how long it is until the next line.
    let time = time.trim_end().trim_end_matches(['+', '!', '#', '*', '@', '$']).trim_end();
    let at_ns = match time.strip_suffix("us") {
        Some(us) => us.trim_end().parse::<u64>().ok()?.checked_mul(1_000)?,
        None if time.contains('.') => time_ns(time)?,
        None => return None,
    };
    let (flags, preempt) = columns.read(letters);
    Some(TraceLine {
        comm: "",
        pid: 0,
        cpu: u32::try_from(cpu).ok()?,
        at_ns,
        flags,
        preempt,
        rest: without_difference(rest),
    })
}

/// `cyclictest 12905 1 1 00000003 00000123 [0000a1b2] 0.389ms (+0.001ms): ...`: trace option
/// verbose.
fn verbose(line: &str) -> Option<TraceLine<'_>> {
    let (left, right) = line.split_once(" [")?;
    let (_, right) = right.split_once("] ")?;
    let (ms, rest) = right.trim_start().split_once("ms (+")?;
    let (_, rest) = rest.split_once("): ")?;
    let mut words = left.split_whitespace().rev();
    let (_index, preempt, flags) = (words.next()?, words.next()?, words.next()?);
    let (cpu, pid) = (words.next()?, words.next()?);
    let comm = words.next()?;
    Some(TraceLine {
        comm,
        pid: pid.parse().ok()?,
        cpu: cpu.parse().ok()?,
        at_ns: time_ns(ms)? / 1_000,
        // Decimal, unlike its neighbours.
        flags: flags.parse().ok()?,
        preempt: u8::try_from(u32::from_str_radix(preempt, 16).ok()? & 0xff).ok()?,
        rest,
    })
}

/// `  2400.439123 |   0)   cat-183   |  d..1. |   0.123 us    |    func();` of function_graph with
/// its time (trace option funcgraph-abstime), or with microseconds, of a latency tracer.
fn graph<'a>(line: &'a str, columns: &FlagColumns) -> Option<TraceLine<'a>> {
    let (time, rest) = line.split_once('|')?;
    let time = time.trim();
    let at_ns = match time.strip_suffix("us") {
        Some(us) => us.trim().parse::<u64>().ok()?.checked_mul(1_000)?,
        None => time_ns(time).filter(|_| time.contains('.'))?,
    };
    let (cpu, rest) = rest.split_once(')')?;
    let mut parts = rest.split('|');
    let (comm, pid) = parts.next()?.trim().rsplit_once('-')?;
    let mut letters = "";
    let mut last = "";
    for part in parts {
        let part = part.trim();
        let is_flags = letters.is_empty() && part.len() >= 4 && !part.contains([' ', '(']);
        if is_flags {
            letters = part;
        }
        last = part;
    }
    let (flags, preempt) = columns.read(letters);
    Some(TraceLine {
        comm,
        pid: pid.trim().parse().ok()?,
        cpu: cpu.trim().parse().ok()?,
        at_ns,
        flags,
        preempt,
        rest: last,
    })
}

fn time_is_first(text: &str) -> bool {
    text.split_once(':').is_some_and(|(time, _)| time_ns(time).is_some())
}

/// `2400.439123` or more digits; without a point, a count of the clock.
fn time_ns(text: &str) -> Option<u64> {
    let Some((seconds, rest)) = text.split_once('.') else { return text.parse().ok() };
    let digits = rest.len();
    if !(1..=9).contains(&digits) || !rest.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let parts = rest.parse::<u64>().ok()? * 10_u64.pow(9 - digits as u32);
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(parts)
}

impl<'a> TraceLine<'a> {
    /// An event of its time and place.
    pub(super) const fn event(&self, what: EventData) -> Event {
        let Self { pid, cpu, at_ns, flags, preempt, .. } = *self;
        Event { at_ns, cpu, pid, flags, preempt, what }
    }

    /// `PERF_RECORD_LOST lost 17`, of perf script's `--show-lost-events`: how many events of the
    /// CPU were lost since its last one.
    pub(super) fn lost(&self) -> Option<u64> {
        let rest = self.rest.trim().strip_prefix("PERF_RECORD_LOST")?;
        rest.trim_start_matches("_SAMPLES").strip_prefix(" lost ")?.trim().parse().ok()
    }

    pub(super) fn body(&self) -> Body<'a> {
        let text = self.rest.trim();
        let text = text.strip_prefix("kernel_stack:").map_or(text, str::trim);
        if text.starts_with("<stack trace") {
            return Body::StackBegins;
        }
        if let Some(body) = self.switch(text) {
            return body;
        }
        if text.starts_with('#') {
            let name = if text.contains("timer_latency") { "timerlat" } else { "hwlat" };
            return Body::Event { name, fields: text };
        }
        // perf writes the system first.
        let named = text.split_once(':').and_then(|(system, rest)| {
            let is_system = is_word(system) && rest.starts_with(|c: char| c.is_ascii_alphabetic());
            is_system.then_some(rest)
        });
        if let Some((name, fields)) = named.unwrap_or(text).split_once(':')
            && is_word(name)
            && (fields.is_empty() || fields.starts_with([' ', '\t']))
        {
            return match name {
                "function" => Body::Call(fields.trim()),
                "funcgraph_entry" => graphed(fields),
                _ => Body::Event { name, fields: fields.trim() },
            };
        }
        if text.ends_with("();") || text.ends_with("() {") || text.starts_with('}') {
            return graphed(text);
        }
        let function = text.split(" <-").next().unwrap_or(text);
        let is_function = is_word(function.split(['+', ' ']).next().unwrap_or(function));
        if is_function && !function.trim().contains(' ') {
            return Body::Call(text);
        }
        Body::Unknown
    }

    /// `232:120:R   + [000]     217:  0:R cyclictest`, or `==>` for a switch.
    fn switch(&self, text: &str) -> Option<Body<'a>> {
        let (prev_pid, rest) = number(text)?;
        let (prev_prio, rest) = priority(rest.strip_prefix(':')?)?;
        let (prev_state, rest) = state(rest.strip_prefix(':')?)?;
        let (rest, is_switch) = match rest.trim_start().strip_prefix("==>") {
            Some(rest) => (rest, true),
            None => (rest.trim_start().strip_prefix('+')?, false),
        };
        let (target_cpu, rest) = rest.trim_start().strip_prefix('[')?.split_once(']')?;
        let target_cpu = target_cpu.trim().parse().ok()?;
        let (next_pid, rest) = number(rest.trim_start())?;
        let next_pid = i32::try_from(next_pid).ok()?;
        let (next_prio, rest) = priority(rest.strip_prefix(':')?)?;
        let (_, rest) = state(rest.strip_prefix(':')?)?;
        let next_comm = Comm::from(rest.trim());
        if !is_switch {
            let (comm, pid, prio) = (next_comm, next_pid, next_prio);
            return Some(Body::Wakeup(EventData::Wakeup { comm, pid, prio, target_cpu }));
        }
        Some(Body::Switch(EventData::Switch {
            prev_comm: Comm::from(self.comm),
            prev_pid: i32::try_from(prev_pid).ok()?,
            prev_prio,
            prev_state,
            next_comm,
            next_pid,
            next_prio,
        }))
    }
}

/// A priority may have blanks before it, and be below 0.
fn priority(text: &str) -> Option<(i32, &str)> {
    let text = text.trim_start();
    let (text, sign) = text.strip_prefix('-').map_or((text, 1), |text| (text, -1));
    let (value, rest) = number(text)?;
    Some((i32::try_from(value).ok()? * sign, rest))
}

/// Letters of a task's state, and what is behind.
fn state(text: &str) -> Option<(u64, &str)> {
    let end = text.find(' ').unwrap_or(text.len());
    Some((task_state(&text[..end])?, &text[end..]))
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.$".contains(&byte))
}

/// `0.123 us | func();`, `func() {`, `}`
fn graphed(text: &str) -> Body<'_> {
    let call = text.rsplit('|').next().unwrap_or(text).trim();
    match call.split_once("()") {
        Some((function, _)) if is_word(function) => Body::Call(function),
        // The end of a function is a sign of life, no call.
        _ => Body::Event { name: "funcgraph_exit", fields: "" },
    }
}

// The lines of a trace that begin with `#`: tracer, latency, task, and what the columns mean.

/// What the header of a trace says.
#[derive(Clone, Debug, Default)]
pub struct TraceHeader {
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
pub enum TextEntry<'a> {
    /// An event, and what the header of its trace said.
    Event(&'a Event, &'a TraceHeader),
    /// Events of this CPU are missing here.
    Lost(u32),
}

impl TraceHeader {
    /// A line without its `#`.
    pub(super) fn line(&mut self, line: &str, columns: &mut FlagColumns) {
        let text = line.trim().trim_start_matches('|').trim();
        if let Some(rest) = text.strip_prefix("entries-in-buffer/entries-written:") {
            self.entries = rest.trim().split('/').next().and_then(|count| count.parse().ok());
            return;
        }
        if let Some(name) = text.strip_prefix("tracer:") {
            name.trim().clone_into(&mut self.tracer);
            // Two traces in one text: the legend of the second counts.
            *columns = FlagColumns::default();
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
        let how = if self.is_section() { WakeUpBasis::Section } else { WakeUpBasis::Woken };
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
            0 => TaskPolicy::Other,
            1 => TaskPolicy::Fifo,
            2 => TaskPolicy::Rr,
            3 => TaskPolicy::Batch,
            5 => TaskPolicy::Idle,
            6 => TaskPolicy::Deadline,
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
