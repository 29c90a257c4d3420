//! For each kernel event that has a meaning here, where its fields lie.

use super::fields::{Bytes, Fields, Num};
use crate::{event::Vector, format::Format};

/// Where the fields common to all events lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Common {
    pub(super) pid: Num,
    pub(super) flags: Num,
    pub(super) preempt: Num,
}

/// Where the fields of an event lie. What has no meaning here, or lacks a field, is `Other`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Plan {
    Other,
    Switch {
        prev_comm: Bytes,
        prev_pid: Num,
        prev_prio: Num,
        prev_state: Num,
        next_comm: Bytes,
        next_pid: Num,
        next_prio: Num,
    },
    Waking(Woken),
    Wakeup(Woken),
    Migrate {
        comm: Bytes,
        pid: Num,
        prio: Num,
        from: Num,
        to: Num,
    },
    PiSetprio {
        comm: Bytes,
        pid: Num,
        old: Num,
        new: Num,
    },
    TimerStart {
        timer: Num,
        function: Num,
        expires: Num,
    },
    TimerCancel {
        timer: Num,
    },
    TimerExpire {
        timer: Num,
        function: Num,
        now: Num,
    },
    TimerExpired {
        timer: Num,
    },
    WheelExpire {
        timer: Num,
        function: Num,
    },
    WheelExpired {
        timer: Num,
    },
    VectorEntry(Vector),
    VectorExit(Vector),
    IrqEntry {
        irq: Num,
        name: Bytes,
    },
    IrqExit {
        irq: Num,
    },
    IpiEntry {
        reason: Bytes,
    },
    IpiExit {
        reason: Bytes,
    },
    IpiRaise {
        cpus: Bytes,
        reason: Option<Bytes>,
    },
    IpiSend {
        cpu: Num,
        callsite: Num,
        callback: Num,
    },
    SoftirqRaise {
        vec: Num,
    },
    SoftirqEntry {
        vec: Num,
    },
    SoftirqExit {
        vec: Num,
    },
    Nmi {
        handler: Num,
        delta: Num,
    },
    Idle {
        state: Num,
    },
    Frequency {
        cpu: Num,
        khz: Num,
    },
    WorkStart {
        work: Num,
        function: Num,
    },
    WorkEnd {
        work: Num,
    },
    PageFault {
        user: bool,
        address: Num,
        ip: Num,
    },
    Irqs {
        off: bool,
        caller: Num,
    },
    Preempt {
        off: bool,
        caller: Num,
    },
    Stack {
        size: Num,
        callers_at: u16,
    },
    Signal {
        number: Num,
        comm: Bytes,
        pid: Num,
    },
    Hotplug {
        cpu: Num,
        target: Num,
        function: Num,
    },
    Timerlat {
        sequence: Num,
        context: Num,
        latency: Num,
    },
    Noise {
        kind: &'static str,
        name: Option<Bytes>,
        number: Option<Num>,
        start: Num,
        duration: Num,
    },
    Hwlat {
        inner: Num,
        outer: Num,
        nmi_count: Num,
    },
}

/// Plans that are carried out together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    Sched,
    Timers,
    Interrupts,
    Others,
}

/// Fields of sched_waking, sched_wakeup and sched_wakeup_new.
#[derive(Clone, Copy, Debug)]
pub(super) struct Woken {
    pub(super) comm: Bytes,
    pub(super) pid: Num,
    pub(super) prio: Num,
    pub(super) cpu: Num,
}

impl Common {
    pub(super) fn of(format: &Format) -> Option<Self> {
        let fields = Fields(format);
        Some(Self {
            pid: fields.num("common_pid")?,
            flags: fields.num("common_flags")?,
            preempt: fields.num("common_preempt_count")?,
        })
    }
}

impl Plan {
    pub(super) fn of(format: &Format) -> Self {
        let fields = Fields(format);
        let plan = match format.system.as_str() {
            "sched" => sched(&format.name, &fields),
            "timer" => timer(&format.name, &fields),
            "irq" | "ipi" | "nmi" | "preemptirq" => interrupt(&format.name, &fields),
            "irq_vectors" => vector(&format.name),
            "osnoise" => noise(&format.name, &fields),
            "ftrace" => ftrace(&format.name, &fields),
            "power" | "workqueue" | "exceptions" | "signal" | "cpuhp" => {
                others(&format.name, &fields)
            }
            _ => None,
        };
        plan.unwrap_or(Self::Other)
    }

    pub(super) const fn group(&self) -> Group {
        match self {
            Self::Switch { .. }
            | Self::Waking(_)
            | Self::Wakeup(_)
            | Self::Migrate { .. }
            | Self::PiSetprio { .. } => Group::Sched,
            Self::TimerStart { .. }
            | Self::TimerCancel { .. }
            | Self::TimerExpire { .. }
            | Self::TimerExpired { .. }
            | Self::WheelExpire { .. }
            | Self::WheelExpired { .. } => Group::Timers,
            Self::VectorEntry(_)
            | Self::VectorExit(_)
            | Self::IrqEntry { .. }
            | Self::IrqExit { .. }
            | Self::IpiEntry { .. }
            | Self::IpiExit { .. }
            | Self::IpiRaise { .. }
            | Self::IpiSend { .. }
            | Self::SoftirqRaise { .. }
            | Self::SoftirqEntry { .. }
            | Self::SoftirqExit { .. }
            | Self::Nmi { .. }
            | Self::Irqs { .. }
            | Self::Preempt { .. } => Group::Interrupts,
            _ => Group::Others,
        }
    }

    /// Whether such an event may concern another CPU than its own.
    pub(super) const fn is_across(&self) -> bool {
        matches!(
            self,
            Self::Migrate { .. }
                | Self::PiSetprio { .. }
                | Self::Signal { .. }
                | Self::IpiRaise { .. }
                | Self::IpiSend { .. }
                | Self::Hotplug { .. }
                | Self::Frequency { .. }
        )
    }

    /// Whether such an event has a brief form.
    pub(super) const fn has_brief(&self) -> bool {
        self.is_across()
            || matches!(
                self,
                Self::Switch { .. }
                    | Self::Waking(_)
                    | Self::Wakeup(_)
                    | Self::TimerStart { .. }
                    | Self::TimerExpire { .. }
                    | Self::TimerExpired { .. }
            )
    }
}

fn sched(name: &str, fields: &Fields<'_>) -> Option<Plan> {
    let woken = || {
        Some(Woken {
            comm: fields.bytes("comm")?,
            pid: fields.num("pid")?,
            prio: fields.num("prio")?,
            cpu: fields.num("target_cpu")?,
        })
    };
    Some(match name {
        "sched_switch" => Plan::Switch {
            prev_comm: fields.bytes("prev_comm")?,
            prev_pid: fields.num("prev_pid")?,
            prev_prio: fields.num("prev_prio")?,
            prev_state: fields.num("prev_state")?,
            next_comm: fields.bytes("next_comm")?,
            next_pid: fields.num("next_pid")?,
            next_prio: fields.num("next_prio")?,
        },
        "sched_waking" => Plan::Waking(woken()?),
        "sched_wakeup" | "sched_wakeup_new" => Plan::Wakeup(woken()?),
        "sched_migrate_task" => Plan::Migrate {
            comm: fields.bytes("comm")?,
            pid: fields.num("pid")?,
            prio: fields.num("prio")?,
            from: fields.num("orig_cpu")?,
            to: fields.num("dest_cpu")?,
        },
        "sched_pi_setprio" => Plan::PiSetprio {
            comm: fields.bytes("comm")?,
            pid: fields.num("pid")?,
            old: fields.num("oldprio")?,
            new: fields.num("newprio")?,
        },
        _ => return None,
    })
}

fn timer(name: &str, fields: &Fields<'_>) -> Option<Plan> {
    let num = |name| fields.num(name);
    Some(match name {
        "hrtimer_start" => Plan::TimerStart {
            timer: num("hrtimer")?,
            function: num("function")?,
            expires: num("expires")?,
        },
        "hrtimer_cancel" => Plan::TimerCancel { timer: num("hrtimer")? },
        "hrtimer_expire_entry" => Plan::TimerExpire {
            timer: num("hrtimer")?,
            function: num("function")?,
            now: num("now")?,
        },
        "hrtimer_expire_exit" => Plan::TimerExpired { timer: num("hrtimer")? },
        "timer_expire_entry" => {
            Plan::WheelExpire { timer: num("timer")?, function: num("function")? }
        }
        "timer_expire_exit" => Plan::WheelExpired { timer: num("timer")? },
        _ => return None,
    })
}

fn interrupt(name: &str, fields: &Fields<'_>) -> Option<Plan> {
    let num = |name| fields.num(name);
    Some(match name {
        "irq_handler_entry" => Plan::IrqEntry { irq: num("irq")?, name: fields.bytes("name")? },
        "irq_handler_exit" => Plan::IrqExit { irq: num("irq")? },
        "softirq_raise" => Plan::SoftirqRaise { vec: num("vec")? },
        "softirq_entry" => Plan::SoftirqEntry { vec: num("vec")? },
        "softirq_exit" => Plan::SoftirqExit { vec: num("vec")? },
        "ipi_entry" => Plan::IpiEntry { reason: fields.bytes("reason")? },
        "ipi_exit" => Plan::IpiExit { reason: fields.bytes("reason")? },
        "ipi_raise" => {
            let (cpus, reason) = (mask(fields, "target_cpus")?, fields.bytes("reason")?);
            Plan::IpiRaise { cpus, reason: Some(reason) }
        }
        "ipi_send_cpumask" => Plan::IpiRaise { cpus: mask(fields, "cpumask")?, reason: None },
        "ipi_send_cpu" => Plan::IpiSend {
            cpu: num("cpu")?,
            callsite: num("callsite")?,
            callback: num("callback")?,
        },
        "nmi_handler" => Plan::Nmi { handler: num("handler")?, delta: num("delta_ns")? },
        "irq_disable" => Plan::Irqs { off: true, caller: num("caller_offs")? },
        "irq_enable" => Plan::Irqs { off: false, caller: num("caller_offs")? },
        "preempt_disable" => Plan::Preempt { off: true, caller: num("caller_offs")? },
        "preempt_enable" => Plan::Preempt { off: false, caller: num("caller_offs")? },
        _ => return None,
    })
}

/// A mask of CPUs; a single number would be none.
fn mask(fields: &Fields<'_>, name: &str) -> Option<Bytes> {
    fields.bytes(name).filter(|bytes| !matches!(bytes, Bytes::Pointer(_)))
}

fn vector(name: &str) -> Option<Plan> {
    let (name, is_entry) = match name.strip_suffix("_entry") {
        Some(name) => (name, true),
        None => (name.strip_suffix("_exit")?, false),
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
    Some(if is_entry { Plan::VectorEntry(vector) } else { Plan::VectorExit(vector) })
}

fn noise(name: &str, fields: &Fields<'_>) -> Option<Plan> {
    let (kind, name, number) = match name {
        "nmi_noise" => ("nmi", None, None),
        "irq_noise" => ("irq", Some(fields.bytes("desc")?), Some(fields.num("vector")?)),
        "softirq_noise" => ("softirq", None, Some(fields.num("vector")?)),
        "thread_noise" => ("thread", Some(fields.bytes("comm")?), Some(fields.num("pid")?)),
        _ => return None,
    };
    let (start, duration) = (fields.num("start")?, fields.num("duration")?);
    Some(Plan::Noise { kind, name, number, start, duration })
}

fn ftrace(name: &str, fields: &Fields<'_>) -> Option<Plan> {
    let num = |name| fields.num(name);
    Some(match name {
        "kernel_stack" => Plan::Stack { size: num("size")?, callers_at: fields.start("caller")? },
        "timerlat" => Plan::Timerlat {
            sequence: num("seqnum")?,
            context: num("context")?,
            latency: num("timer_latency")?,
        },
        "hwlat" => Plan::Hwlat {
            inner: num("duration")?,
            outer: num("outer_duration")?,
            nmi_count: num("nmi_count")?,
        },
        _ => return None,
    })
}

fn others(name: &str, fields: &Fields<'_>) -> Option<Plan> {
    let num = |name| fields.num(name);
    let fault = |user| Some(Plan::PageFault { user, address: num("address")?, ip: num("ip")? });
    Some(match name {
        "cpu_idle" => Plan::Idle { state: num("state")? },
        "cpu_frequency" => Plan::Frequency { cpu: num("cpu_id")?, khz: num("state")? },
        "workqueue_execute_start" => {
            Plan::WorkStart { work: num("work")?, function: num("function")? }
        }
        "workqueue_execute_end" => Plan::WorkEnd { work: num("work")? },
        "page_fault_user" => fault(true)?,
        "page_fault_kernel" => fault(false)?,
        "signal_generate" => {
            Plan::Signal { number: num("sig")?, comm: fields.bytes("comm")?, pid: num("pid")? }
        }
        "cpuhp_enter" | "cpuhp_multi_enter" => {
            Plan::Hotplug { cpu: num("cpu")?, target: num("target")?, function: num("fun")? }
        }
        _ => return None,
    })
}
