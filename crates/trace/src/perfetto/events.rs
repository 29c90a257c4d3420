//! Kernel events as Perfetto has them. Interrupts that it has no event for are shown as those of
//! devices; the rest as generic events with the kernel's names.

use super::proto::Message;
use crate::{Event, What, Window, event::Vector};

/// A value of a generic event.
enum Value<'a> {
    Int(i64),
    Uint(u64),
    Text(&'a str),
}

/// The `FtraceEvent`; `None`: nothing that can be shown as one.
pub(super) fn encode(event: &Event, window: &Window) -> Option<Message> {
    let (field, body) = sched(&event.what)
        .or_else(|| timers(&event.what))
        .or_else(|| interrupts(&event.what))
        .or_else(|| others(event, window))?;
    let mut message = Message::default();
    message.number(1, event.at_ns);
    // Stored as unsigned, the idle task as 0.
    message.int(2, event.pid);
    message.number(5, u64::from(event.flags));
    message.message(field, &body);
    Some(message)
}

fn body(fill: impl FnOnce(&mut Message)) -> Message {
    let mut message = Message::default();
    fill(&mut message);
    message
}

fn sched(what: &What) -> Option<(u64, Message)> {
    Some(match what {
        What::Switch {
            prev_comm,
            prev_pid,
            prev_prio,
            prev_state,
            next_comm,
            next_pid,
            next_prio,
        } => (
            4,
            body(|to| {
                to.text(1, &prev_comm.to_string());
                to.int(2, *prev_pid);
                to.int(3, *prev_prio);
                to.number(4, *prev_state);
                to.text(5, &next_comm.to_string());
                to.int(6, *next_pid);
                to.int(7, *next_prio);
            }),
        ),
        What::Waking { comm, pid, prio, target_cpu }
        | What::Wakeup { comm, pid, prio, target_cpu } => {
            let field = if matches!(what, What::Waking { .. }) { 20 } else { 17 };
            let body = body(|to| {
                to.text(1, &comm.to_string());
                to.int(2, *pid);
                to.int(3, *prio);
                to.int(4, 1);
                to.int(5, *target_cpu);
            });
            (field, body)
        }
        What::Migrate { comm, pid, prio, from_cpu, to_cpu } => (
            491,
            body(|to| {
                to.text(1, &comm.to_string());
                to.int(2, *pid);
                to.int(3, *prio);
                to.int(4, *from_cpu);
                to.int(5, *to_cpu);
            }),
        ),
        What::PiSetprio { comm, pid, old_prio, new_prio } => (
            353,
            body(|to| {
                to.text(1, &comm.to_string());
                to.int(2, *new_prio);
                to.int(3, *old_prio);
                to.int(4, *pid);
            }),
        ),
        _ => return None,
    })
}

fn timers(what: &What) -> Option<(u64, Message)> {
    let timer_alone = |timer: u64| body(|to| to.number(1, timer));
    Some(match *what {
        What::TimerStart { timer, function, expires_ns } => (
            551,
            body(|to| {
                to.number(1, timer);
                to.number(2, function);
                to.number(3, expires_ns);
            }),
        ),
        What::TimerCancel { timer } => (552, timer_alone(timer)),
        What::TimerExpire { timer, function, now_ns } => (
            553,
            body(|to| {
                to.number(1, timer);
                to.number(2, now_ns);
                to.number(3, function);
            }),
        ),
        What::TimerExpired { timer } => (554, timer_alone(timer)),
        What::WheelExpire { timer, function } => (
            557,
            body(|to| {
                to.number(1, timer);
                to.number(3, function);
            }),
        ),
        What::WheelExpired { timer } => (558, timer_alone(timer)),
        _ => return None,
    })
}

/// What Perfetto shows in the place of the number of an interrupt that has none.
const NO_NUMBER: i32 = -1;

fn interrupts(what: &What) -> Option<(u64, Message)> {
    let handler = |irq: i32, name: &str| {
        let body = body(|to| {
            to.int(1, irq);
            to.text(2, name);
        });
        (36, body)
    };
    let vec = |vec: u32| body(|to| to.number(1, u64::from(vec)));
    Some(match what {
        What::VectorEntry { vector: Vector::LocalTimer } => (559, body(|to| to.int(1, 0))),
        What::VectorExit { vector: Vector::LocalTimer } => (560, body(|to| to.int(1, 0))),
        What::VectorEntry { vector } => handler(NO_NUMBER, vector_name(*vector)),
        What::VectorExit { .. } => (37, body(|to| to.int(1, NO_NUMBER))),
        What::IrqEntry { irq, name } => handler(*irq, &name.to_string()),
        What::IrqExit { irq } => (
            37,
            body(|to| {
                to.int(1, *irq);
                to.int(2, 1);
            }),
        ),
        What::IpiEntry { reason } => (21, body(|to| to.text(1, &reason.to_string()))),
        What::IpiExit { reason } => (22, body(|to| to.text(1, &reason.to_string()))),
        What::IpiRaise { cpus, reason } => (
            23,
            body(|to| {
                to.number(1, *cpus & u64::from(u32::MAX));
                to.text(2, &reason.to_string());
            }),
        ),
        What::SoftirqEntry { vec: number } => (24, vec(*number)),
        What::SoftirqExit { vec: number } => (25, vec(*number)),
        What::SoftirqRaise { vec: number } => (26, vec(*number)),
        _ => return None,
    })
}

const fn vector_name(vector: Vector) -> &'static str {
    match vector {
        Vector::LocalTimer => "local_timer",
        Vector::Reschedule => "reschedule",
        Vector::CallFunction => "call_function",
        Vector::CallFunctionSingle => "call_function_single",
        Vector::IrqWork => "irq_work",
        Vector::Thermal => "thermal_apic",
        Vector::Threshold => "threshold_apic",
        Vector::DeferredError => "deferred_error_apic",
        Vector::Error => "error_apic",
        Vector::Spurious => "spurious_apic",
        Vector::PlatformIpi => "x86_platform_ipi",
    }
}

fn others(event: &Event, window: &Window) -> Option<(u64, Message)> {
    let idle = |state: u32| {
        body(|to| {
            to.number(1, u64::from(state));
            to.number(2, u64::from(event.cpu));
        })
    };
    Some(match &event.what {
        What::Idle { state } => (13, idle(*state)),
        What::IdleExit => (13, idle(u32::MAX)),
        What::Frequency { of_cpu, khz } => (
            11,
            body(|to| {
                to.number(1, u64::from(*khz));
                to.number(2, u64::from(*of_cpu));
            }),
        ),
        What::WorkStart { work, function } => (
            58,
            body(|to| {
                to.number(1, *work);
                to.number(2, *function);
            }),
        ),
        What::WorkEnd { work } => (57, body(|to| to.number(1, *work))),
        What::Signal { number, comm, pid } => (
            325,
            body(|to| {
                to.text(2, &comm.to_string());
                to.int(4, *pid);
                to.int(6, *number);
            }),
        ),
        What::Hotplug { of_cpu, target, function } => (
            345,
            body(|to| {
                to.number(1, u64::from(*of_cpu));
                to.number(2, *function);
                to.int(4, *target);
            }),
        ),
        what => (327, generic(what, window)?),
    })
}

/// An event by its name, with its fields by theirs.
fn generic(what: &What, window: &Window) -> Option<Message> {
    let symbol = |address: u64| match window.symbol(address) {
        Some(symbol) => symbol.to_owned(),
        None => format!("{address:#x}"),
    };
    Some(match what {
        What::IpiSend { to_cpu, callsite, callback } => named(
            "ipi_send_cpu",
            &[
                ("cpu", Value::Uint(u64::from(*to_cpu))),
                ("callsite", Value::Text(&symbol(*callsite))),
                ("callback", Value::Text(&symbol(*callback))),
            ],
        ),
        What::Nmi { handler, delta_ns } => named(
            "nmi_handler",
            &[("handler", Value::Text(&symbol(*handler))), ("delta_ns", Value::Uint(*delta_ns))],
        ),
        What::PageFault { user, address, ip } => named(
            if *user { "page_fault_user" } else { "page_fault_kernel" },
            &[("address", Value::Uint(*address)), ("ip", Value::Text(&symbol(*ip)))],
        ),
        What::Irqs { off, caller } => named(
            if *off { "irq_disable" } else { "irq_enable" },
            &[("caller", Value::Text(&symbol(*caller)))],
        ),
        What::Preempt { off, caller } => named(
            if *off { "preempt_disable" } else { "preempt_enable" },
            &[("caller", Value::Text(&symbol(*caller)))],
        ),
        What::Timerlat { sequence, context, latency_ns } => named(
            "timerlat",
            &[
                ("seqnum", Value::Uint(u64::from(*sequence))),
                ("context", Value::Uint(u64::from(*context))),
                ("timer_latency", Value::Uint(*latency_ns)),
            ],
        ),
        What::Noise { kind, name, number, start_ns, duration_ns } => named(
            &format!("{kind}_noise"),
            &[
                ("name", Value::Text(&name.to_string())),
                ("number", Value::Int(i64::from(*number))),
                ("start", Value::Uint(*start_ns)),
                ("duration", Value::Uint(*duration_ns)),
            ],
        ),
        What::Hwlat { inner_ns, outer_ns, nmi_count } => named(
            "hwlat",
            &[
                ("duration", Value::Uint(*inner_ns)),
                ("outer_duration", Value::Uint(*outer_ns)),
                ("nmi_count", Value::Uint(u64::from(*nmi_count))),
            ],
        ),
        // Stacks have a track of their own; what has no meaning here has no fields, either.
        _ => return None,
    })
}

fn named(name: &str, fields: &[(&str, Value<'_>)]) -> Message {
    let mut message = Message::default();
    message.text(1, name);
    for (name, value) in fields {
        let mut field = Message::default();
        field.text(1, name);
        match value {
            Value::Text(text) => field.text(3, text),
            Value::Int(value) => field.int(4, *value),
            Value::Uint(value) => field.number(5, *value),
        }
        message.message(2, &field);
    }
    message
}
