//! One line of a trace: task, CPU, flags, time, and the rest by its form.

use crate::{
    Event, What,
    event::{Comm, flags},
    kernel::text::task_state,
};

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
pub(super) struct Columns(Vec<Column>);

/// A legend has at most so many lines.
const COLUMNS_MAX: usize = 16;

impl Columns {
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
            // Before 5.16 nothing told of migration.
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
                (Column::Irqs, 'd') => bits |= flags::IRQS_OFF,
                (Column::Irqs, 'b') => bits |= flags::BH_OFF,
                (Column::Irqs, 'D') => bits |= flags::IRQS_OFF | flags::BH_OFF,
                (Column::Resched, 'N' | 'n' | 'B' | 'b') => bits |= flags::NEED_RESCHED,
                (Column::Resched, 'l' | 'L') | (Column::ReschedLazy, 'L' | 'l' | 'N' | 'n') => {
                    bits |= flags::NEED_RESCHED_LAZY;
                }
                (Column::Interrupt, 'Z' | 'z') => bits |= flags::NMI,
                (Column::Interrupt, 'h') => bits |= flags::HARDIRQ,
                (Column::Interrupt, 'H') => bits |= flags::HARDIRQ | flags::SOFTIRQ,
                (Column::Interrupt, 's') => bits |= flags::SOFTIRQ,
                (Column::Preempt, _) => preempt |= digit,
                (Column::Migrate, _) => preempt |= digit << 4,
                _ => {}
            }
        }
        (bits, preempt)
    }
}

/// A line, split.
pub(super) struct Line<'a> {
    pub(super) comm: &'a str,
    pub(super) pid: i32,
    pub(super) cpu: u32,
    pub(super) at_ns: u64,
    flags: u8,
    preempt: u8,
    rest: &'a str,
}

/// What it says.
pub(super) enum Body<'a> {
    StackBegins,
    /// As the latency tracers write it.
    Switch(What),
    Wakeup(What),
    Event {
        name: &'a str,
        fields: &'a str,
    },
    Call {
        function: &'a str,
        caller: &'a str,
    },
    Unknown,
}

/// `CPU:1 [LOST 67486 EVENTS]`: which CPU, how many.
pub(super) fn lost(line: &str) -> Option<(u32, u64)> {
    let (cpu, rest) = line.strip_prefix("CPU:")?.split_once(" [LOST ")?;
    Some((cpu.trim().parse().ok()?, rest.strip_suffix(" EVENTS]")?.trim().parse().ok()?))
}

/// Splits a line of either form.
pub(super) fn parse<'a>(line: &'a str, columns: &Columns) -> Option<Line<'a>> {
    // Names may have dashes and spaces: the first place counts where the rest fits.
    line.match_indices('-').find_map(|(at, _)| {
        let comm = line[..at].trim_start();
        let rest = &line[at + 1..];
        let (pid, rest) = number(rest)?;
        let pid = i32::try_from(pid).ok()?;
        let rest = rest.strip_prefix(' ')?.trim_start();
        usual(rest, columns).or_else(|| latency(rest, columns)).map(|line| Line {
            comm,
            pid,
            ..line
        })
    })
}

/// Digits at the start, and what is behind.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// `[001] d.h3.  2400.439123: sched_waking: ...`, perhaps with the process in parentheses before
/// and without flags.
fn usual<'a>(text: &'a str, columns: &Columns) -> Option<Line<'a>> {
    let text = match text.strip_prefix('(') {
        Some(process) => process.split_once(')')?.1.trim_start(),
        None => text,
    };
    let (cpu, rest) = text.strip_prefix('[')?.split_once(']')?;
    let mut rest = rest.strip_prefix(' ')?.trim_start();
    let mut letters = "";
    if !rest.starts_with(|letter: char| letter.is_ascii_digit()) || !time_is_first(rest) {
        (letters, rest) = rest.split_once(' ')?;
    }
    let (time, rest) = rest.trim_start().split_once(':')?;
    let (flags, preempt) = columns.read(letters);
    Some(Line {
        comm: "",
        pid: 0,
        cpu: cpu.parse().ok()?,
        at_ns: time_ns(time.trim())?,
        flags,
        preempt,
        rest: rest.strip_prefix(' ').unwrap_or(rest),
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

/// `0dn.h413    1us+: ...`: CPU and flags in one, microseconds since the trace began.
fn latency<'a>(text: &'a str, columns: &Columns) -> Option<Line<'a>> {
    let (cpu, rest) = number(text)?;
    let (letters, rest) = rest.split_once(' ')?;
    if letters.is_empty() {
        return None;
    }
    let (us, rest) = number(rest.trim_start())?;
    let rest = rest.strip_prefix("us")?;
    // One letter says how long until the next line.
    let mut rest = rest.chars();
    rest.next()?;
    let rest = rest.as_str().strip_prefix(':')?;
    let (flags, preempt) = columns.read(letters);
    Some(Line {
        comm: "",
        pid: 0,
        cpu: u32::try_from(cpu).ok()?,
        at_ns: us.checked_mul(1_000)?,
        flags,
        preempt,
        rest: rest.strip_prefix(' ').unwrap_or(rest),
    })
}

impl<'a> Line<'a> {
    /// An event of its time and place.
    pub(super) const fn event(&self) -> Event {
        let Self { pid, cpu, at_ns, flags, preempt, .. } = *self;
        Event { at_ns, cpu, pid, flags, preempt, what: What::IdleExit }
    }

    pub(super) fn body(&self) -> Body<'a> {
        let text = self.rest.trim();
        if text.starts_with("<stack trace>") {
            return Body::StackBegins;
        }
        if let Some(body) = self.switch(text) {
            return body;
        }
        if text.starts_with('#') {
            let name = if text.contains("timer_latency") { "timerlat" } else { "hwlat" };
            return Body::Event { name, fields: text };
        }
        let is_word = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.$".contains(&byte))
        };
        if let Some((name, fields)) = text.split_once(':')
            && is_word(name)
            && (fields.is_empty() || fields.starts_with(' '))
        {
            return Body::Event { name, fields: fields.trim() };
        }
        let (function, caller) = match text.split_once(" <-") {
            Some((function, caller)) => (function.trim(), caller.trim()),
            None => (text, ""),
        };
        let is_function = |text: &str| is_word(text.split(['+', ' ']).next().unwrap_or(text));
        if is_function(function) && !function.contains(' ') {
            return Body::Call { function, caller };
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
            return Some(Body::Wakeup(What::Wakeup { comm, pid, prio, target_cpu }));
        }
        Some(Body::Switch(What::Switch {
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
