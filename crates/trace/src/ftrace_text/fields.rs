//! The fields of an event as its `print fmt` writes them, back into a typed event.

use std::collections::{BTreeMap, HashMap};

use super::line::task_state;
use crate::{
    What,
    event::{Comm, Name, Vector},
};

/// Addresses of names: an address where the text has one, else a made-up one for each name.
#[derive(Default)]
pub(super) struct Symbols {
    by_name: HashMap<String, u64>,
    names: BTreeMap<u64, String>,
}

/// Where made-up addresses begin: no kernel has code there.
const MADE_UP: u64 = 0xf000_0000_0000_0000;

impl Symbols {
    /// `function+0x20/0x60`, `function`, or an address in hexadecimal digits.
    pub(super) fn address(&mut self, text: &str) -> u64 {
        if let Some(address) = hex(text) {
            return address;
        }
        if let Some(&address) = self.by_name.get(text) {
            return address;
        }
        let address = MADE_UP + 16 * self.by_name.len() as u64;
        self.by_name.insert(text.to_owned(), address);
        self.names.insert(address, text.to_owned());
        address
    }

    pub(super) fn into_names(self) -> BTreeMap<u64, String> {
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
fn word<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let is_start = |at: &usize| *at == 0 || text.as_bytes()[at - 1] == b' ';
    // From behind: a name before it may hold anything.
    let at = text.rmatch_indices(key).map(|(at, _)| at).find(is_start)? + key.len();
    text[at..].split_whitespace().next()
}

fn value<T: std::str::FromStr>(text: &str, key: &str) -> Option<T> {
    word(text, key)?.parse().ok()
}

/// What is between `key` at the start and the last ` next`.
fn name<'a>(text: &'a str, key: &str, next: &str) -> Option<&'a str> {
    let text = text.strip_prefix(key)?;
    text.rfind(next).map(|end| &text[..end])
}

/// The event; `None`: it has no meaning here; `Err`: it has, but its fields are not as expected.
pub(super) fn what(event: &str, text: &str, symbols: &mut Symbols) -> Option<Result<What, ()>> {
    let found = match event {
        "sched_switch" => switch(text),
        "sched_waking" | "sched_wakeup" | "sched_wakeup_new" | "sched_migrate_task"
        | "sched_pi_setprio" => wakes(event, text),
        "hrtimer_start"
        | "hrtimer_cancel"
        | "hrtimer_expire_entry"
        | "hrtimer_expire_exit"
        | "timer_expire_entry"
        | "timer_expire_exit" => timers(event, text, symbols),
        "irq_handler_entry" | "irq_handler_exit" | "softirq_raise" | "softirq_entry"
        | "softirq_exit" | "ipi_entry" | "ipi_exit" | "ipi_raise" | "ipi_send_cpu"
        | "ipi_send_cpumask" | "nmi_handler" => interrupts(event, text, symbols),
        "timerlat" => timerlat(text),
        "hwlat" => hwlat(text),
        "irq_noise" | "softirq_noise" | "thread_noise" | "nmi_noise" => noise(event, text),
        _ => match others(event, text, symbols) {
            Some(found) => found,
            None => vector(event)?,
        },
    };
    Some(found.ok_or(()))
}

/// `prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=9`
fn switch(text: &str) -> Option<What> {
    let (prev, next) = text.split_at(text.rfind(" ==> next_comm=")?);
    let next = &next[" ==> ".len()..];
    Some(What::Switch {
        prev_comm: Comm::from(name(prev, "prev_comm=", " prev_pid=")?),
        prev_pid: value(prev, "prev_pid=")?,
        prev_prio: value(prev, "prev_prio=")?,
        prev_state: task_state(word(prev, "prev_state=")?)?,
        next_comm: Comm::from(name(next, "next_comm=", " next_pid=")?),
        next_pid: value(next, "next_pid=")?,
        next_prio: value(next, "next_prio=")?,
    })
}

fn wakes(event: &str, text: &str) -> Option<What> {
    let comm = Comm::from(name(text, "comm=", " pid=")?);
    let pid = value(text, "pid=")?;
    Some(match event {
        "sched_pi_setprio" => What::PiSetprio {
            comm,
            pid,
            old_prio: value(text, "oldprio=")?,
            new_prio: value(text, "newprio=")?,
        },
        "sched_migrate_task" => What::Migrate {
            comm,
            pid,
            prio: value(text, "prio=")?,
            from_cpu: value(text, "orig_cpu=")?,
            to_cpu: value(text, "dest_cpu=")?,
        },
        _ => {
            let (prio, target_cpu) = (value(text, "prio=")?, value(text, "target_cpu=")?);
            match event {
                "sched_waking" => What::Waking { comm, pid, prio, target_cpu },
                _ => What::Wakeup { comm, pid, prio, target_cpu },
            }
        }
    })
}

fn timers(event: &str, text: &str, symbols: &mut Symbols) -> Option<What> {
    let key = if event.starts_with("hr") { "hrtimer=" } else { "timer=" };
    let timer = pointer(word(text, key)?)?;
    let mut function = || Some(symbols.address(word(text, "function=")?));
    Some(match event {
        "hrtimer_start" => {
            What::TimerStart { timer, function: function()?, expires_ns: value(text, "expires=")? }
        }
        "hrtimer_cancel" => What::TimerCancel { timer },
        "hrtimer_expire_entry" => {
            What::TimerExpire { timer, function: function()?, now_ns: value(text, "now=")? }
        }
        "hrtimer_expire_exit" => What::TimerExpired { timer },
        "timer_expire_entry" => What::WheelExpire { timer, function: function()? },
        _ => What::WheelExpired { timer },
    })
}

/// A pointer as `%p` and `%px` write it.
fn pointer(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

fn interrupts(event: &str, text: &str, symbols: &mut Symbols) -> Option<What> {
    let reason = || {
        let (_, reason) = text.split_once('(')?;
        Some(Name::from(reason.strip_suffix(')')?))
    };
    let vec = || value(text, "vec=");
    Some(match event {
        "irq_handler_entry" => {
            let (_, handler) = text.split_once(" name=")?;
            What::IrqEntry { irq: value(text, "irq=")?, name: Name::from(handler.trim()) }
        }
        "irq_handler_exit" => What::IrqExit { irq: value(text, "irq=")? },
        "softirq_raise" => What::SoftirqRaise { vec: vec()? },
        "softirq_entry" => What::SoftirqEntry { vec: vec()? },
        "softirq_exit" => What::SoftirqExit { vec: vec()? },
        "ipi_entry" => What::IpiEntry { reason: reason()? },
        "ipi_exit" => What::IpiExit { reason: reason()? },
        "ipi_raise" => {
            What::IpiRaise { cpus: mask(word(text, "target_mask=")?)?, reason: reason()? }
        }
        "ipi_send_cpumask" => {
            What::IpiRaise { cpus: cpu_list(word(text, "cpumask=")?)?, reason: Name::default() }
        }
        "ipi_send_cpu" => What::IpiSend {
            to_cpu: value(text, "cpu=")?,
            callsite: symbols.address(word(text, "callsite=")?),
            callback: symbols.address(word(text, "callback=")?),
        },
        _ => {
            let (handler, rest) = text.split_once("() ")?;
            What::Nmi {
                handler: symbols.address(handler.trim()),
                delta_ns: value(rest, "delta_ns: ")?,
            }
        }
    })
}

/// `00000000,00000005`
fn mask(text: &str) -> Option<u64> {
    let digits: String = text.split(',').collect();
    let low = digits.len().saturating_sub(16);
    u64::from_str_radix(digits.get(low..)?, 16).ok()
}

/// `0-3,8`
fn cpu_list(text: &str) -> Option<u64> {
    text.split(',').try_fold(0, |bits: u64, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        let cpus = (first..=last.min(63)).fold(0, |bits: u64, cpu| bits | 1 << cpu);
        Some(bits | cpus)
    })
}

/// `#2018  context    irq timer_latency      2848 ns`
fn timerlat(text: &str) -> Option<What> {
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
    Some(What::Timerlat { sequence, context, latency_ns: latency.parse().ok()? })
}

/// `#1 inner/outer(us): 21/20    ts:1702024432.844243126 count:3018 nmi-total:5 nmi-count:1`
fn hwlat(text: &str) -> Option<What> {
    let (inner, outer) = word(text, "inner/outer(us): ")?.split_once('/')?;
    let ns = |us: &str| us.parse::<u64>().ok()?.checked_mul(1_000);
    let nmi_count = word(text, "nmi-count:").map_or(Some(0), |count| count.parse().ok())?;
    Some(What::Hwlat { inner_ns: ns(inner)?, outer_ns: ns(outer)?, nmi_count })
}

/// `local_timer:236 start 8.797239135 duration 7756 ns`; of an NMI without the first word.
fn noise(event: &str, text: &str) -> Option<What> {
    let kind = event.strip_suffix("_noise")?;
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
    Some(What::Noise {
        kind: kind.into(),
        name: name.into(),
        number,
        start_ns: start_ns.checked_add(parts.parse().ok()?)?,
        duration_ns: value(rest, "duration ")?,
    })
}

/// `None`: not one of these.
fn others(event: &str, text: &str, symbols: &mut Symbols) -> Option<Option<What>> {
    let mut symbol = |key| Some(symbols.address(word(text, key)?));
    Some(match event {
        "cpu_idle" => value(text, "state=").map(|state| match state {
            u32::MAX => What::IdleExit,
            state => What::Idle { state },
        }),
        "cpu_frequency" => value(text, "cpu_id=")
            .zip(value(text, "state="))
            .map(|(of_cpu, khz)| What::Frequency { of_cpu, khz }),
        "workqueue_execute_start" => work(text)
            .zip(symbol("function "))
            .map(|(work, function)| What::WorkStart { work, function }),
        "workqueue_execute_end" => work(text).map(|work| What::WorkEnd { work }),
        "page_fault_user" | "page_fault_kernel" => symbol("address=")
            .zip(symbol("ip="))
            .map(|(address, ip)| What::PageFault { user: event == "page_fault_user", address, ip }),
        "irq_disable" => symbol("caller=").map(|caller| What::Irqs { off: true, caller }),
        "irq_enable" => symbol("caller=").map(|caller| What::Irqs { off: false, caller }),
        "preempt_disable" => symbol("caller=").map(|caller| What::Preempt { off: true, caller }),
        "preempt_enable" => symbol("caller=").map(|caller| What::Preempt { off: false, caller }),
        "signal_generate" => signal(text),
        "cpuhp_enter" | "cpuhp_multi_enter" => hotplug(text, symbols),
        _ => return None,
    })
}

/// `work struct 00000000d98d5ecb: function neigh_managed_work`
fn work(text: &str) -> Option<u64> {
    pointer(word(text, "work struct ")?.trim_end_matches(':'))
}

/// `sig=17 errno=0 code=1 comm=bash pid=25249 grp=1 res=0`
fn signal(text: &str) -> Option<What> {
    let (before, rest) = text.split_once(" comm=")?;
    let end = rest.rfind(" pid=")?;
    Some(What::Signal {
        number: value(before, "sig=")?,
        comm: Comm::from(&rest[..end]),
        pid: value(&rest[end..], "pid=")?,
    })
}

/// `cpu: 0001 target: 195 step: 194 (smpboot_create_threads)`
fn hotplug(text: &str, symbols: &mut Symbols) -> Option<What> {
    let (_, function) = text.rsplit_once('(')?;
    Some(What::Hotplug {
        of_cpu: value(text, "cpu: ")?,
        target: value(text, "target: ")?,
        function: symbols.address(function.strip_suffix(')')?),
    })
}

/// The vectors of x86; their fields say nothing more.
fn vector(event: &str) -> Option<Option<What>> {
    let (name, is_entry) = match event.strip_suffix("_entry") {
        Some(name) => (name, true),
        None => (event.strip_suffix("_exit")?, false),
    };
    let vector = match name {
        "local_timer" => Vector::LocalTimer,
        "reschedule" => Vector::Reschedule,
        "call_function" => Vector::CallFunction,
        "call_function_single" => Vector::CallFunctionSingle,
        "irq_work" => Vector::IrqWork,
        "thermal_apic" => Vector::Thermal,
        "threshold_apic" => Vector::Threshold,
        "deferred_error_apic" => Vector::DeferredError,
        "error_apic" => Vector::Error,
        "spurious_apic" => Vector::Spurious,
        "x86_platform_ipi" => Vector::PlatformIpi,
        _ => return None,
    };
    Some(Some(if is_entry { What::VectorEntry { vector } } else { What::VectorExit { vector } }))
}
