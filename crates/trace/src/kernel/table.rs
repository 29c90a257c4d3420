//! The kernel events that have a meaning here. To add one, see CONTRIBUTING.md.

#![expect(unused_variables, reason = "a row does not use each part of its macro")]

pub(crate) use super::codec::{EventKind, FieldValue};

use super::codec::{Codec, EventField, Perfetto, Role};
use super::text::TextSymbols;
use super::{codec, text};
use crate::EventData;
use crate::event::{HandlerName, Vector};

/// A row of the table:
///
/// ```text
/// Role "system" "name" Perfetto => Variant { field, constant = value, default or value }
/// field: Codec "C type" kernel_name "[16]" @number-in-Perfetto key "text before it", ...
/// + value written only => "C type" kernel_name, ...
/// ; "print fmt" ; function that reads the text, where the keys do not suffice
/// ```
///
/// A constant distinguishes events of one variant; a default does not. The text before a field is
/// `kernel_name=` by default. A field whose type is empty exists in Perfetto only.
macro_rules! event {
    ($role:ident $system:literal $name:literal $perfetto:expr =>
        $what:ident { $($out:ident $(= $const:expr)? $(, or $default:expr)?);* }
        $($($slot:ident : $codec:ident)? $(+ $value:expr =>)? $type:literal $field:ident
            $($suffix:literal)? $(@ $number:literal)? $(key $key:literal)?),* ;
        $print:expr $(; $parse:expr)?
    ) => {
        EventKind {
            system: $system,
            name: $name,
            role: Role::$role,
            fields: &[$(EventField {
                declared: concat!($type, " ", stringify!($field) $(, $suffix)?),
                wanted: first!(
                    $(<codec::$codec as Codec>::WANTED,)?
                    $(unread!($value),)?
                ),
                number: first!($($number,)? 0),
            }),*],
            print: $print,
            perfetto: $perfetto,
            read: |record, places| {
                let mut places = places.iter();
                $(
                    let place = *places.next()?;
                    $(let $slot = <codec::$codec as Codec>::read(record, place)?;)?
                )*
                Some(EventData::$what { $($out $(: $const)? $(: $default)?),* })
            },
            parse: first!($($parse,)? Some(|text, symbols| {
                $(
                    let key = first!($($key,)? concat!(stringify!($field), "="));
                    $(let $slot = <codec::$codec as Codec>::parse(text, key, symbols)?;)?
                )*
                Some(EventData::$what { $($out $(: $const)? $(: $default)?),* })
            })),
            write: |what| match what {
                EventData::$what { $($out),* } if true $($(&& *$out == $const)?)* => Some(vec![$(
                    $(<codec::$codec as Codec>::write($slot),)?
                    $($value,)?
                )*]),
                _ => None,
            },
        }
    };
}

/// The first of several expressions.
macro_rules! first {
    ($first:expr $(, $rest:expr)* $(,)?) => {
        $first
    };
}

macro_rules! unread {
    ($value:expr) => {
        super::codec::FieldForm::Nothing
    };
}

const WAKE_PRINT: &str =
    r#""comm=%s pid=%d prio=%d target_cpu=%03d", REC->comm, REC->pid, REC->prio, REC->target_cpu"#;

/// The events that are read and written. Their order gives the numbers in a written file: add at
/// the end.
pub(super) static EVENTS: &[EventKind] = &[
    event!(
        Switch "sched" "sched_switch" Perfetto::Message(4) =>
        Switch { prev_comm; prev_pid; prev_prio; prev_state; next_comm; next_pid; next_prio }
        prev_comm: TaskName "char" prev_comm "[16]" @1,
        prev_pid: Tid "pid_t" prev_pid @2,
        prev_prio: Int "int" prev_prio @3,
        prev_state: TaskState "long" prev_state @4,
        next_comm: TaskName "char" next_comm "[16]" @5,
        next_pid: Tid "pid_t" next_pid @6,
        next_prio: Int "int" next_prio @7;
        "\"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=0x%lx ==> next_comm=%s \
         next_pid=%d next_prio=%d\", REC->prev_comm, REC->prev_pid, REC->prev_prio, \
         REC->prev_state, REC->next_comm, REC->next_pid, REC->next_prio";
        Some(|text, _| text::switch(text))
    ),
    event!(
        Waking "sched" "sched_waking" Perfetto::Message(20) =>
        Waking { comm; pid; prio; target_cpu }
        comm: TaskName "char" comm "[16]" @1,
        pid: Tid "pid_t" pid @2,
        prio: Int "int" prio @3,
        target_cpu: Uint "int" target_cpu @5,
        + FieldValue::Number(1) => "" success @4;
        WAKE_PRINT
    ),
    event!(
        Wakeup "sched" "sched_wakeup" Perfetto::Message(17) =>
        Wakeup { comm; pid; prio; target_cpu }
        comm: TaskName "char" comm "[16]" @1,
        pid: Tid "pid_t" pid @2,
        prio: Int "int" prio @3,
        target_cpu: Uint "int" target_cpu @5,
        + FieldValue::Number(1) => "" success @4;
        WAKE_PRINT
    ),
    event!(
        Across "sched" "sched_migrate_task" Perfetto::Message(491) =>
        Migrate { comm; pid; prio; from_cpu; to_cpu }
        comm: TaskName "char" comm "[16]" @1,
        pid: Tid "pid_t" pid @2,
        prio: Int "int" prio @3,
        from_cpu: Uint "int" orig_cpu @4,
        to_cpu: Uint "int" dest_cpu @5;
        "\"comm=%s pid=%d prio=%d orig_cpu=%d dest_cpu=%d\", REC->comm, REC->pid, \
         REC->prio, REC->orig_cpu, REC->dest_cpu"
    ),
    event!(
        Across "sched" "sched_pi_setprio" Perfetto::Message(353) =>
        PiSetprio { comm; pid; old_prio; new_prio }
        comm: TaskName "char" comm "[16]" @1,
        pid: Tid "pid_t" pid @4,
        old_prio: Int "int" oldprio @3,
        new_prio: Int "int" newprio @2;
        "\"comm=%s pid=%d oldprio=%d newprio=%d\", REC->comm, REC->pid, REC->oldprio, \
         REC->newprio"
    ),
    event!(
        TimerStart "timer" "hrtimer_start" Perfetto::Message(551) =>
        TimerStart { timer; function; expires_ns; soft_ns }
        timer: Pointer "void *" hrtimer @1,
        function: Symbol "void *" function @2,
        expires_ns: Wide "s64" expires @3,
        soft_ns: Wide "s64" softexpires;
        "\"hrtimer=%p function=%ps expires=%llu softexpires=%llu\", REC->hrtimer, \
         REC->function, REC->expires, REC->softexpires"
    ),
    event!(
        Plain "timer" "hrtimer_cancel" Perfetto::Message(552) =>
        TimerCancel { timer }
        timer: Pointer "void *" hrtimer @1;
        r#""hrtimer=%p", REC->hrtimer"#
    ),
    event!(
        TimerExpire "timer" "hrtimer_expire_entry" Perfetto::Message(553) =>
        TimerExpire { timer; function; now_ns }
        timer: Pointer "void *" hrtimer @1,
        now_ns: Wide "s64" now @2,
        function: Symbol "void *" function @3;
        r#""hrtimer=%p function=%ps now=%llu", REC->hrtimer, REC->function, REC->now"#
    ),
    event!(
        TimerExpired "timer" "hrtimer_expire_exit" Perfetto::Message(554) =>
        TimerExpired { timer }
        timer: Pointer "void *" hrtimer @1;
        r#""hrtimer=%p", REC->hrtimer"#
    ),
    event!(
        State "timer" "timer_expire_entry" Perfetto::Message(557) =>
        WheelExpire { timer; function }
        timer: Pointer "void *" timer @1,
        function: Symbol "void *" function @3;
        r#""timer=%p function=%ps", REC->timer, REC->function"#
    ),
    event!(
        State "timer" "timer_expire_exit" Perfetto::Message(558) =>
        WheelExpired { timer }
        timer: Pointer "void *" timer @1;
        r#""timer=%p", REC->timer"#
    ),
    event!(
        State "irq" "irq_handler_entry" Perfetto::Message(36) =>
        IrqEntry { irq; name }
        irq: Int "int" irq @1,
        name: NameLast "__data_loc char[]" name @2 key " name=";
        r#""irq=%d name=%s", REC->irq, __get_str(name)"#
    ),
    event!(
        State "irq" "irq_handler_exit" Perfetto::Message(37) =>
        IrqExit { irq }
        irq: Int "int" irq @1,
        + FieldValue::Number(1) => "" ret @2;
        r#""irq=%d", REC->irq"#
    ),
    event!(
        Plain "irq" "softirq_raise" Perfetto::Message(26) =>
        SoftirqRaise { vec }
        vec: Uint "unsigned int" vec @1;
        r#""vec=%u", REC->vec"#
    ),
    event!(
        State "irq" "softirq_entry" Perfetto::Message(24) =>
        SoftirqEntry { vec }
        vec: Uint "unsigned int" vec @1;
        r#""vec=%u", REC->vec"#
    ),
    event!(
        State "irq" "softirq_exit" Perfetto::Message(25) =>
        SoftirqExit { vec }
        vec: Uint "unsigned int" vec @1;
        r#""vec=%u", REC->vec"#
    ),
    event!(
        State "ipi" "ipi_entry" Perfetto::Message(21) =>
        IpiEntry { reason }
        reason: Reason "__data_loc char[]" reason @1 key "(";
        r#""(%s)", __get_str(reason)"#
    ),
    event!(
        State "ipi" "ipi_exit" Perfetto::Message(22) =>
        IpiExit { reason }
        reason: Reason "__data_loc char[]" reason @1 key "(";
        r#""(%s)", __get_str(reason)"#
    ),
    event!(
        Across "ipi" "ipi_raise" Perfetto::Message(23) =>
        IpiRaise { cpus; reason }
        cpus: Mask "__data_loc cpumask_t" target_cpus @1 key "target_mask=",
        reason: Reason "__data_loc char[]" reason @2 key "(";
        r#""target_mask=%s (%s)", __get_cpumask(target_cpus), __get_str(reason)"#
    ),
    event!(
        Across "ipi" "ipi_send_cpu" Perfetto::Generic =>
        IpiSend { to_cpu; callsite; callback }
        to_cpu: Uint "unsigned int" cpu @1,
        callsite: Symbol "void *" callsite @2,
        callback: Symbol "void *" callback @3;
        r#""cpu=%u callsite=%pS callback=%pS", REC->cpu, REC->callsite, REC->callback"#
    ),
    event!(
        Plain "nmi" "nmi_handler" Perfetto::Generic =>
        Nmi { handler; delta_ns }
        handler: SymbolBefore "void *" handler @1 key "() ",
        delta_ns: Wide "s64" delta_ns @2 key "delta_ns: ";
        r#""%ps() delta_ns: %lld", REC->handler, REC->delta_ns"#
    ),
    event!(
        State "power" "cpu_idle" Perfetto::Message(13) =>
        Idle { state }
        state: Uint "u32" state @1,
        + FieldValue::OwnCpu => "u32" cpu_id @2;
        r#""state=%lu cpu_id=%lu", (unsigned long)REC->state, (unsigned long)REC->cpu_id"#
    ),
    event!(
        Across "power" "cpu_frequency" Perfetto::Message(11) =>
        Frequency { of_cpu; khz }
        khz: Uint "u32" state @1,
        of_cpu: Uint "u32" cpu_id @2;
        r#""state=%lu cpu_id=%lu", (unsigned long)REC->state, (unsigned long)REC->cpu_id"#
    ),
    event!(
        State "workqueue" "workqueue_execute_start" Perfetto::Message(58) =>
        WorkStart { work; function }
        work: Pointer "void *" work @1 key "work struct ",
        function: Symbol "void *" function @2 key "function ";
        r#""work struct %p: function %ps", REC->work, REC->function"#
    ),
    event!(
        State "workqueue" "workqueue_execute_end" Perfetto::Message(57) =>
        WorkEnd { work }
        work: Pointer "void *" work @1 key "work struct ";
        r#""work struct %p", REC->work"#
    ),
    event!(
        Plain "exceptions" "page_fault_user" Perfetto::Generic =>
        PageFault { user = true; address; ip }
        address: Data "unsigned long" address @1,
        ip: Symbol "unsigned long" ip @2;
        r#""address=0x%lx ip=%ps", REC->address, (void *)REC->ip"#
    ),
    event!(
        Plain "exceptions" "page_fault_kernel" Perfetto::Generic =>
        PageFault { user = false; address; ip }
        address: Data "unsigned long" address @1,
        ip: Symbol "unsigned long" ip @2;
        r#""address=0x%lx ip=%ps", REC->address, (void *)REC->ip"#
    ),
    event!(
        State "preemptirq" "irq_disable" Perfetto::Generic =>
        Irqs { off = true; caller }
        caller: Caller "s32" caller_offs key "caller=",
        + FieldValue::Symbol(*caller) => "void *" caller @1;
        r#""caller=%pS", REC->caller"#
    ),
    event!(
        State "preemptirq" "irq_enable" Perfetto::Generic =>
        Irqs { off = false; caller }
        caller: Caller "s32" caller_offs key "caller=",
        + FieldValue::Symbol(*caller) => "void *" caller @1;
        r#""caller=%pS", REC->caller"#
    ),
    event!(
        State "preemptirq" "preempt_disable" Perfetto::Generic =>
        Preempt { off = true; caller }
        caller: Caller "s32" caller_offs key "caller=",
        + FieldValue::Symbol(*caller) => "void *" caller @1;
        r#""caller=%pS", REC->caller"#
    ),
    event!(
        State "preemptirq" "preempt_enable" Perfetto::Generic =>
        Preempt { off = false; caller }
        caller: Caller "s32" caller_offs key "caller=",
        + FieldValue::Symbol(*caller) => "void *" caller @1;
        r#""caller=%pS", REC->caller"#
    ),
    event!(
        Plain "ftrace" "kernel_stack" Perfetto::Apart =>
        Stack { frames }
        + FieldValue::Number(frames.len() as u64) => "int" size,
        frames: Frames "unsigned long" caller "[8]";
        r#""=> %ps", (void *)REC->caller[0]"#;
        None
    ),
    event!(
        Across "signal" "signal_generate" Perfetto::Message(325) =>
        Signal { number; comm; pid }
        number: Int "int" sig @6,
        comm: TaskName "char" comm "[16]" @2,
        pid: Tid "pid_t" pid @4;
        r#""sig=%d comm=%s pid=%d", REC->sig, REC->comm, REC->pid"#;
        Some(|text, _| text::signal(text))
    ),
    event!(
        Across "cpuhp" "cpuhp_enter" Perfetto::Message(345) =>
        Hotplug { of_cpu; target; function }
        of_cpu: Uint "unsigned int" cpu @1 key "cpu: ",
        target: Int "int" target @4 key "target: ",
        + codec::Int::write(target) => "int" idx,
        function: SymbolLast "void *" fun @2 key "(";
        r#""cpu: %04u target: %3d step: %3d (%ps)", REC->cpu, REC->target, REC->idx, REC->fun"#
    ),
    event!(
        Plain "ftrace" "timerlat" Perfetto::Generic =>
        Timerlat { sequence; context; latency_ns }
        sequence: Uint "unsigned int" seqnum @1,
        context: Uint "int" context @2,
        latency_ns: Wide "u64" timer_latency @3;
        r#""seq:%u context:%d timer_latency:%llu", REC->seqnum, REC->context, REC->timer_latency"#;
        Some(|text, _| text::timerlat(text))
    ),
    event!(
        Plain "osnoise" "nmi_noise" Perfetto::Apart =>
        Noise {
            kind = HandlerName::from("nmi"); name, or HandlerName::default(); number, or -1;
            start_ns; duration_ns
        }
        start_ns: Wide "u64" start,
        duration_ns: Wide "u64" duration;
        r#""start=%llu duration=%llu ns", REC->start, REC->duration"#;
        Some(|text, _| text::noise("nmi", text))
    ),
    event!(
        Plain "osnoise" "irq_noise" Perfetto::Apart =>
        Noise { kind = HandlerName::from("irq"); name; number; start_ns; duration_ns }
        start_ns: Wide "u64" start,
        duration_ns: Wide "u64" duration,
        name: NameLast "__data_loc char[]" desc,
        number: Int "int" vector;
        "\"%s:%d start=%llu duration=%llu ns\", __get_str(desc), REC->vector, REC->start, \
         REC->duration";
        Some(|text, _| text::noise("irq", text))
    ),
    event!(
        Plain "osnoise" "softirq_noise" Perfetto::Apart =>
        Noise {
            kind = HandlerName::from("softirq"); name, or HandlerName::default(); number;
            start_ns; duration_ns
        }
        start_ns: Wide "u64" start,
        duration_ns: Wide "u64" duration,
        number: Int "int" vector;
        r#""vector=%d start=%llu duration=%llu ns", REC->vector, REC->start, REC->duration"#;
        Some(|text, _| text::noise("softirq", text))
    ),
    event!(
        Plain "osnoise" "thread_noise" Perfetto::Apart =>
        Noise { kind = HandlerName::from("thread"); name; number; start_ns; duration_ns }
        name: NameLast "char" comm "[16]",
        start_ns: Wide "u64" start,
        duration_ns: Wide "u64" duration,
        number: Int "pid_t" pid;
        r#""%8s:%d start=%llu duration=%llu ns", REC->comm, REC->pid, REC->start, REC->duration"#;
        Some(|text, _| text::noise("thread", text))
    ),
    event!(
        Plain "ftrace" "hwlat" Perfetto::Generic =>
        Hwlat { inner_ns; outer_ns; nmi_count }
        inner_ns: Wide "u64" duration @1,
        outer_ns: Wide "u64" outer_duration @2,
        nmi_count: Uint "unsigned int" nmi_count @3;
        "\"inner:%llu outer:%llu nmi-count:%u\", REC->duration, REC->outer_duration, \
         REC->nmi_count";
        Some(|text, _| text::hwlat(text))
    ),
    event!(
        Plain "ftrace" "function" Perfetto::Generic =>
        Call { function; caller }
        function: Symbol "unsigned long" ip @1,
        caller: Symbol "unsigned long" parent_ip @2;
        r#"" %ps <-- %ps", (void *)REC->ip, (void *)REC->parent_ip"#;
        Some(text::call)
    ),
];

/// Events that are read, and whose meaning is written as another event. The end of idle is written
/// as an idle state.
pub(super) static READ_ONLY: &[EventKind] = &[
    event!(
        Wakeup "sched" "sched_wakeup_new" Perfetto::Message(17) =>
        Wakeup { comm; pid; prio; target_cpu }
        comm: TaskName "char" comm "[16]" @1,
        pid: Tid "pid_t" pid @2,
        prio: Int "int" prio @3,
        target_cpu: Uint "int" target_cpu @5,
        + FieldValue::Number(1) => "" success @4;
        WAKE_PRINT
    ),
    event!(
        Across "ipi" "ipi_send_cpumask" Perfetto::Message(23) =>
        IpiRaise { cpus; reason, or HandlerName::default() }
        cpus: CpuList "__data_loc cpumask_t" cpumask @1;
        ""
    ),
    event!(
        Across "cpuhp" "cpuhp_multi_enter" Perfetto::Message(345) =>
        Hotplug { of_cpu; target; function }
        of_cpu: Uint "unsigned int" cpu @1 key "cpu: ",
        target: Int "int" target @4 key "target: ",
        + codec::Int::write(target) => "int" idx,
        function: SymbolLast "void *" fun @2 key "(";
        r#""cpu: %04u target: %3d step: %3d (%ps)", REC->cpu, REC->target, REC->idx, REC->fun"#
    ),
    event!(
        State "power" "cpu_idle" Perfetto::Message(13) =>
        IdleExit {  }
        + FieldValue::Number(u64::from(u32::MAX)) => "u32" state @1,
        + FieldValue::OwnCpu => "u32" cpu_id @2;
        ""
    ),
];

/// The two events of each interrupt vector. Perfetto has those of the local timer; the others are
/// shown as interrupts of devices without a number.
macro_rules! vectors {
    ($($vector:ident $entry:literal $exit:literal $begin:literal $end:literal
        $($name:literal)?),*) => {
        &[$(
            event!(
                State "irq_vectors" $entry Perfetto::Message($begin) =>
                VectorEntry { vector = Vector::$vector }
                + FieldValue::Number(0) => "int" vector,
                + FieldValue::Number(number(Vector::$vector)) => "" irq @1
                $(, + FieldValue::Text($name) => "" name @2)?;
                VECTOR_PRINT
            ),
            event!(
                State "irq_vectors" $exit Perfetto::Message($end) =>
                VectorExit { vector = Vector::$vector }
                + FieldValue::Number(0) => "int" vector,
                + FieldValue::Number(number(Vector::$vector)) => "" irq @1;
                VECTOR_PRINT
            )
        ),*]
    };
}

/// What Perfetto shows as the number of a vector: the local timer has messages of its own.
const fn number(vector: Vector) -> u64 {
    match vector {
        Vector::LocalTimer => 0,
        _ => u64::MAX,
    }
}

const VECTOR_PRINT: &str = r#""vector=%d", REC->vector"#;

pub(super) static VECTORS: &[EventKind] = vectors! {
    LocalTimer "local_timer_entry" "local_timer_exit" 559 560,
    Reschedule "reschedule_entry" "reschedule_exit" 36 37 b"reschedule",
    CallFunction "call_function_entry" "call_function_exit" 36 37 b"call_function",
    CallFunctionSingle "call_function_single_entry" "call_function_single_exit"
        36 37 b"call_function_single",
    IrqWork "irq_work_entry" "irq_work_exit" 36 37 b"irq_work",
    Thermal "thermal_apic_entry" "thermal_apic_exit" 36 37 b"thermal_apic",
    Threshold "threshold_apic_entry" "threshold_apic_exit" 36 37 b"threshold_apic",
    DeferredError "deferred_error_apic_entry" "deferred_error_apic_exit"
        36 37 b"deferred_error_apic",
    Error "error_apic_entry" "error_apic_exit" 36 37 b"error_apic",
    Spurious "spurious_apic_entry" "spurious_apic_exit" 36 37 b"spurious_apic",
    PlatformIpi "x86_platform_ipi_entry" "x86_platform_ipi_exit" 36 37 b"x86_platform_ipi"
};

// The registry of kernel events. A row of `EVENTS` says all that decoding, reading of texts and
// writing of files require to know of an event.

/// The events that are written, in the order of their numbers.
pub(crate) fn written() -> impl Iterator<Item = &'static EventKind> {
    EVENTS.iter().chain(VECTORS)
}

pub(super) fn all() -> impl Iterator<Item = &'static EventKind> {
    written().chain(READ_ONLY)
}

/// The event of this name.
pub(crate) fn find_event(system: &str, name: &str) -> Option<&'static EventKind> {
    all().find(|kind| kind.name == name && kind.system == system)
}

/// The event and the values of its fields; `None`: there is no kernel event for it.
pub(crate) fn event_values(what: &EventData) -> Option<(&'static EventKind, Vec<FieldValue<'_>>)> {
    all().find_map(|kind| Some((kind, (kind.write)(what)?)))
}

/// An event of a text. `None`: it has no meaning here; `Err`: its fields are not as expected.
pub(crate) fn parse_event(
    name: &str,
    text: &str,
    symbols: &mut TextSymbols,
) -> Option<Result<EventData, ()>> {
    let parse = all().find(|kind| kind.name == name)?.parse?;
    let what = parse(text, symbols).or_else(|| text::of_trace_cmd(name, text));
    Some(what.map(completed).ok_or(()))
}

/// The kernel writes the end of idle as a state of -1.
pub(crate) fn completed(what: EventData) -> EventData {
    match what {
        EventData::Idle { state: u32::MAX } => EventData::IdleExit,
        what => what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::KERNELS;

    #[test]
    fn every_event_fits_and_is_one_that_the_test_kernel_writes() {
        let formats = KERNELS[0].formats();
        for kind in all() {
            assert!(kind.fields.len() <= codec::FIELDS_MAX, "{}", kind.name);
            let name = format!("{}:{}", kind.system, kind.name);
            // Two of the vectors stand for all.
            if kind.system == "irq_vectors" {
                continue;
            }
            let format = formats.event(&name).expect(&name);
            for field in
                kind.fields.iter().filter(|field| field.wanted != codec::FieldForm::Nothing)
            {
                let place = codec::FieldPlace::of(format, field.name(), field.wanted);
                assert!(place.is_some(), "{name}: {}", field.name());
            }
        }
    }
}
