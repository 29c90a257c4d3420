//! Fields of an event as its `print fmt` writes them.

use std::collections::{BTreeMap, HashMap};

use crate::EventData;
use crate::event::Comm;

/// Addresses of names: an address where the text has one, else a made-up one for each name.
#[derive(Default)]
pub(crate) struct TextSymbols {
    by_name: HashMap<String, u64>,
    names: BTreeMap<u64, String>,
}

/// Where made-up addresses begin: no kernel has code there.
const MADE_UP: u64 = 0xf000_0000_0000_0000;

/// Functions of timers that threads sleep on; their made-up addresses are the same in each text.
const SLEEPS: [&str; 3] = ["hrtimer_wakeup", "posix_timer_fn", "timerfd_tmrproc"];

const FIRST_SLEEP: u64 = MADE_UP - 16 * SLEEPS.len() as u64;

impl TextSymbols {
    /// `function+0x20/0x60`, `function`, or an address in hexadecimal digits.
    pub(crate) fn address(&mut self, text: &str) -> u64 {
        if let Some(address) = hex(text) {
            return address;
        }
        // trace-cmd writes `function/0x0` where it does not know the offset.
        let text = text.strip_suffix("/0x0").unwrap_or(text);
        if let Some(&address) = self.by_name.get(text) {
            return address;
        }
        let address = match SLEEPS.iter().position(|name| *name == text) {
            Some(sleep) => FIRST_SLEEP + 16 * sleep as u64,
            None => MADE_UP + 16 * self.by_name.len() as u64,
        };
        self.by_name.insert(text.to_owned(), address);
        self.names.insert(address, text.to_owned());
        address
    }

    /// Whether threads sleep on timers of the function with a made-up address.
    pub(crate) fn is_sleep(address: u64) -> bool {
        (FIRST_SLEEP..MADE_UP).contains(&address)
    }

    pub(crate) fn into_names(self) -> BTreeMap<u64, String> {
        self.names
    }
}

/// `0x1f`, or the 16 digits of a pointer.
fn hex(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if text.len() == 16 || text.len() == 8 => u64::from_str_radix(text, 16).ok(),
        None => None,
    }
}

/// The word behind `key`, which ends with `=` or `: `, at the start of the text or behind a blank.
pub(super) fn word<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let is_start = |at: &usize| *at == 0 || text.as_bytes()[at - 1] == b' ';
    // From behind: a name before it may hold anything.
    let at = text.rmatch_indices(key).map(|(at, _)| at).find(is_start)? + key.len();
    text[at..].split_whitespace().next()
}

pub(super) fn value<T: std::str::FromStr>(text: &str, key: &str) -> Option<T> {
    word(text, key)?.parse().ok()
}

/// What is between `key` at the start and the last ` next`.
fn name<'a>(text: &'a str, key: &str, next: &str) -> Option<&'a str> {
    let text = text.strip_prefix(key)?;
    text.rfind(next).map(|end| &text[..end])
}

/// A pointer as `%p` and `%px` write it.
pub(super) fn pointer(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

/// `00000000,00000005`
pub(super) fn mask(text: &str) -> Option<u64> {
    let digits: String = text.split(',').collect();
    let low = digits.len().saturating_sub(16);
    u64::from_str_radix(digits.get(low..)?, 16).ok()
}

/// `0-3,8`
pub(super) fn cpu_list(text: &str) -> Option<u64> {
    text.split(',').try_fold(0, |bits: u64, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        let cpus = (first..=last.min(63)).fold(0, |bits: u64, cpu| bits | 1 << cpu);
        Some(bits | cpus)
    })
}

/// `prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=9`
pub(super) fn switch(text: &str) -> Option<EventData> {
    let (prev, next) = text.split_at(text.rfind(" next_comm=")?);
    let (prev, next) = (prev.strip_suffix(" ==>").unwrap_or(prev), &next[1..]);
    Some(EventData::Switch {
        prev_comm: Comm::from(name(prev, "prev_comm=", " prev_pid=")?),
        prev_pid: value(prev, "prev_pid=")?,
        prev_prio: value(prev, "prev_prio=")?,
        prev_state: task_state(word(prev, "prev_state=")?)?,
        next_comm: Comm::from(name(next, "next_comm=", " next_pid=")?),
        next_pid: value(next, "next_pid=")?,
        next_prio: value(next, "next_prio=")?,
    })
}

/// `__schedule <-schedule`; trace-cmd writes two dashes.
pub(super) fn call(text: &str, symbols: &mut TextSymbols) -> Option<EventData> {
    let (function, caller) = match text.split_once(" <-") {
        Some((function, caller)) => (function.trim(), caller.trim_start_matches('-').trim()),
        None => (text.trim(), ""),
    };
    let is_name = |text: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.$+/[]:- ".contains(&byte);
        !text.is_empty() && text.bytes().all(allowed)
    };
    let caller = if caller.is_empty() { 0 } else { symbols.address(caller) };
    is_name(function).then(|| EventData::Call { function: symbols.address(function), caller })
}

/// The forms of trace-cmd's own: `a:12 [120] R ==> b:13 [19]`, and `b:13 [19] success=1 CPU:000`.
pub(super) fn of_trace_cmd(name: &str, text: &str) -> Option<EventData> {
    if name == "sched_switch" {
        let (prev, next) = text.split_once(" ==> ")?;
        let (prev, prev_state) = prev.rsplit_once(' ')?;
        let (prev_comm, prev_pid, prev_prio) = ranked(prev)?;
        let (next_comm, next_pid, next_prio) = ranked(next)?;
        let prev_state = task_state(prev_state)?;
        return Some(EventData::Switch {
            prev_comm,
            prev_pid,
            prev_prio,
            prev_state,
            next_comm,
            next_pid,
            next_prio,
        });
    }
    let (task, cpu) = text.rsplit_once("CPU:")?;
    let task = &task[..task.rfind(']')? + 1];
    let ((comm, pid, prio), target_cpu) = (ranked(task)?, cpu.trim().parse().ok()?);
    match name {
        "sched_waking" => Some(EventData::Waking { comm, pid, prio, target_cpu }),
        "sched_wakeup" | "sched_wakeup_new" => {
            Some(EventData::Wakeup { comm, pid, prio, target_cpu })
        }
        _ => None,
    }
}

/// `name:12 [120]`
fn ranked(text: &str) -> Option<(Comm, i32, i32)> {
    let (who, prio) = text.trim().strip_suffix(']')?.rsplit_once(" [")?;
    let (comm, pid) = who.rsplit_once(':')?;
    Some((Comm::from(comm), pid.parse().ok()?, prio.parse().ok()?))
}

/// `#2018  context    irq timer_latency      2848 ns`
pub(super) fn timerlat(text: &str) -> Option<EventData> {
    let mut words = text.strip_prefix('#')?.split_whitespace();
    let sequence = words.next()?.parse().ok()?;
    let context = (words.next() == Some("context")).then(|| words.next()).flatten()?;
    let context = match context {
        "irq" => 0,
        "thread" => 1,
        // "user-ret", or "user" in 6.5.
        _ if context.starts_with("user") => 2,
        _ => return None,
    };
    let latency = words.next_back().filter(|&unit| unit == "ns").and_then(|_| words.next_back())?;
    Some(EventData::Timerlat { sequence, context, latency_ns: latency.parse().ok()? })
}

/// `#1 inner/outer(us): 21/20    ts:1702024432.844243126 count:3018 nmi-total:5 nmi-count:1`
pub(super) fn hwlat(text: &str) -> Option<EventData> {
    let (inner, outer) = word(text, "inner/outer(us): ")?.split_once('/')?;
    let ns = |us: &str| us.parse::<u64>().ok()?.checked_mul(1_000);
    let nmi_count = word(text, "nmi-count:").map_or(Some(0), |count| count.parse().ok())?;
    Some(EventData::Hwlat { inner_ns: ns(inner)?, outer_ns: ns(outer)?, nmi_count })
}

/// `local_timer:236 start 8.797239135 duration 7756 ns`; of an NMI without the first word.
pub(super) fn noise(kind: &str, text: &str) -> Option<EventData> {
    let at = if text.starts_with("start ") { 0 } else { text.rfind(" start ")? + 1 };
    let (who, rest) = text.split_at(at);
    let (name, number) = match who.trim().rsplit_once(':') {
        Some((name, number)) => (name.trim(), number.parse().ok()?),
        None => ("", -1),
    };
    let (seconds, parts) = word(rest, "start ")?.split_once('.')?;
    if parts.len() != 9 {
        return None;
    }
    let start_ns = seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?;
    Some(EventData::Noise {
        kind: kind.into(),
        name: name.into(),
        number,
        start_ns: start_ns.checked_add(parts.parse().ok()?)?,
        duration_ns: value(rest, "duration ")?,
    })
}

/// `sig=17 errno=0 code=1 comm=bash pid=25249 grp=1 res=0`
pub(super) fn signal(text: &str) -> Option<EventData> {
    let (before, rest) = text.split_once(" comm=")?;
    let end = rest.rfind(" pid=")?;
    Some(EventData::Signal {
        number: value(before, "sig=")?,
        comm: Comm::from(&rest[..end]),
        pid: value(&rest[end..], "pid=")?,
    })
}

/// The kernel's bits of `R+`, `S`, `D|K`.
pub(crate) fn task_state(text: &str) -> Option<u64> {
    text.trim_end_matches('+').split('|').try_fold(0, |bits, letter| {
        Some(
            bits | match letter {
                "R" => 0,
                "S" => 1,
                "D" => 2,
                "T" => 4,
                "t" => 8,
                "X" => 0x10,
                "Z" => 0x20,
                "P" => 0x40,
                "I" => 0x80,
                // Wake-kill, waking and such do not decide whether it can run.
                "K" | "W" | "N" | "x" | "L" => 0,
                number => match number.strip_prefix("0x") {
                    Some(digits) => u64::from_str_radix(digits, 16).ok()? & 0xff,
                    None => number.parse::<u64>().ok()? & 0xff,
                },
            },
        )
    })
}
