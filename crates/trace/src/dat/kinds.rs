//! The events that rtproof writes into a trace.dat of its own, with names and fields as the kernel
//! has them, so that readers take them for the kernel's.

use std::fmt::Write as _;

/// How a field is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    /// A number of so many bytes.
    Number(u8),
    /// `char[16]`.
    Comm,
    /// `__data_loc char[]`: a text behind the fields.
    Text,
    /// `__data_loc cpumask_t`: a mask behind the fields.
    Mask,
    /// Addresses to the end of the record.
    Addresses,
}

/// A field: how it is declared, and stored.
pub(super) struct Field {
    declared: &'static str,
    is_signed: bool,
    pub(super) stored: Stored,
}

/// An event.
pub(super) struct Kind {
    pub(super) system: &'static str,
    pub(super) name: &'static str,
    pub(super) fields: &'static [Field],
    print: &'static str,
}

const fn field(declared: &'static str, is_signed: bool, stored: Stored) -> Field {
    Field { declared, is_signed, stored }
}

const fn int(declared: &'static str) -> Field {
    field(declared, true, Stored::Number(4))
}

const fn uint(declared: &'static str) -> Field {
    field(declared, false, Stored::Number(4))
}

const fn wide(declared: &'static str) -> Field {
    field(declared, false, Stored::Number(8))
}

const fn signed(declared: &'static str) -> Field {
    field(declared, true, Stored::Number(8))
}

const fn comm(declared: &'static str) -> Field {
    field(declared, false, Stored::Comm)
}

const fn text(declared: &'static str) -> Field {
    field(declared, false, Stored::Text)
}

const fn kind(
    system: &'static str,
    name: &'static str,
    fields: &'static [Field],
    print: &'static str,
) -> Kind {
    Kind { system, name, fields, print }
}

const WAKES: &[Field] =
    &[comm("char comm[16]"), int("pid_t pid"), int("int prio"), int("int target_cpu")];
const WAKES_PRINT: &str =
    r#""comm=%s pid=%d prio=%d target_cpu=%03d", REC->comm, REC->pid, REC->prio, REC->target_cpu"#;
const SOFTIRQ: &[Field] = &[uint("unsigned int vec")];
const SOFTIRQ_PRINT: &str = r#""vec=%u", REC->vec"#;
const VECTOR: &[Field] = &[int("int vector")];
const VECTOR_PRINT: &str = r#""vector=%d", REC->vector"#;
const IPI: &[Field] = &[text("__data_loc char[] reason")];
const IPI_PRINT: &str = r#""(%s)", __get_str(reason)"#;
const FAULT: &[Field] = &[wide("unsigned long address"), wide("unsigned long ip")];
const FAULT_PRINT: &str = r#""address=0x%lx ip=%ps", REC->address, (void *)REC->ip"#;
const CALLER: &[Field] = &[int("s32 caller_offs"), wide("void * caller")];
const CALLER_PRINT: &str = r#""caller=%pS", REC->caller"#;
const VEC_NOISE_PRINT: &str =
    r#""vector=%d start=%llu duration=%llu ns", REC->vector, REC->start, REC->duration"#;

/// All of them; an event's number is its place here plus [`FIRST_ID`].
pub(super) const KINDS: &[Kind] = &[
    kind(
        "sched",
        "sched_switch",
        &[
            comm("char prev_comm[16]"),
            int("pid_t prev_pid"),
            int("int prev_prio"),
            signed("long prev_state"),
            comm("char next_comm[16]"),
            int("pid_t next_pid"),
            int("int next_prio"),
        ],
        "\"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=0x%lx ==> next_comm=%s \
         next_pid=%d next_prio=%d\", REC->prev_comm, REC->prev_pid, REC->prev_prio, \
         REC->prev_state, REC->next_comm, REC->next_pid, REC->next_prio",
    ),
    kind("sched", "sched_waking", WAKES, WAKES_PRINT),
    kind("sched", "sched_wakeup", WAKES, WAKES_PRINT),
    kind(
        "sched",
        "sched_migrate_task",
        &[
            comm("char comm[16]"),
            int("pid_t pid"),
            int("int prio"),
            int("int orig_cpu"),
            int("int dest_cpu"),
        ],
        "\"comm=%s pid=%d prio=%d orig_cpu=%d dest_cpu=%d\", REC->comm, REC->pid, \
         REC->prio, REC->orig_cpu, REC->dest_cpu",
    ),
    kind(
        "sched",
        "sched_pi_setprio",
        &[comm("char comm[16]"), int("pid_t pid"), int("int oldprio"), int("int newprio")],
        "\"comm=%s pid=%d oldprio=%d newprio=%d\", REC->comm, REC->pid, REC->oldprio, \
         REC->newprio",
    ),
    kind(
        "timer",
        "hrtimer_start",
        &[
            wide("void * hrtimer"),
            wide("void * function"),
            signed("s64 expires"),
            signed("s64 softexpires"),
        ],
        "\"hrtimer=%p function=%ps expires=%llu softexpires=%llu\", REC->hrtimer, \
         REC->function, REC->expires, REC->softexpires",
    ),
    kind("timer", "hrtimer_cancel", &[wide("void * hrtimer")], r#""hrtimer=%p", REC->hrtimer"#),
    kind(
        "timer",
        "hrtimer_expire_entry",
        &[wide("void * hrtimer"), signed("s64 now"), wide("void * function")],
        r#""hrtimer=%p function=%ps now=%llu", REC->hrtimer, REC->function, REC->now"#,
    ),
    kind(
        "timer",
        "hrtimer_expire_exit",
        &[wide("void * hrtimer")],
        r#""hrtimer=%p", REC->hrtimer"#,
    ),
    kind(
        "timer",
        "timer_expire_entry",
        &[wide("void * timer"), wide("void * function")],
        r#""timer=%p function=%ps", REC->timer, REC->function"#,
    ),
    kind("timer", "timer_expire_exit", &[wide("void * timer")], r#""timer=%p", REC->timer"#),
    kind(
        "irq",
        "irq_handler_entry",
        &[int("int irq"), text("__data_loc char[] name")],
        r#""irq=%d name=%s", REC->irq, __get_str(name)"#,
    ),
    kind("irq", "irq_handler_exit", &[int("int irq")], r#""irq=%d", REC->irq"#),
    kind("irq", "softirq_raise", SOFTIRQ, SOFTIRQ_PRINT),
    kind("irq", "softirq_entry", SOFTIRQ, SOFTIRQ_PRINT),
    kind("irq", "softirq_exit", SOFTIRQ, SOFTIRQ_PRINT),
    kind("ipi", "ipi_entry", IPI, IPI_PRINT),
    kind("ipi", "ipi_exit", IPI, IPI_PRINT),
    kind(
        "ipi",
        "ipi_raise",
        &[
            field("__data_loc cpumask_t target_cpus", false, Stored::Mask),
            text("__data_loc char[] reason"),
        ],
        r#""target_mask=%s (%s)", __get_cpumask(target_cpus), __get_str(reason)"#,
    ),
    kind(
        "ipi",
        "ipi_send_cpu",
        &[uint("unsigned int cpu"), wide("void * callsite"), wide("void * callback")],
        r#""cpu=%u callsite=%pS callback=%pS", REC->cpu, REC->callsite, REC->callback"#,
    ),
    kind(
        "nmi",
        "nmi_handler",
        &[wide("void * handler"), signed("s64 delta_ns")],
        r#""%ps() delta_ns: %lld", REC->handler, REC->delta_ns"#,
    ),
    kind(
        "power",
        "cpu_idle",
        &[uint("u32 state"), uint("u32 cpu_id")],
        r#""state=%lu cpu_id=%lu", (unsigned long)REC->state, (unsigned long)REC->cpu_id"#,
    ),
    kind(
        "power",
        "cpu_frequency",
        &[uint("u32 state"), uint("u32 cpu_id")],
        r#""state=%lu cpu_id=%lu", (unsigned long)REC->state, (unsigned long)REC->cpu_id"#,
    ),
    kind(
        "workqueue",
        "workqueue_execute_start",
        &[wide("void * work"), wide("void * function")],
        r#""work struct %p: function %ps", REC->work, REC->function"#,
    ),
    kind(
        "workqueue",
        "workqueue_execute_end",
        &[wide("void * work")],
        r#""work struct %p", REC->work"#,
    ),
    kind("exceptions", "page_fault_user", FAULT, FAULT_PRINT),
    kind("exceptions", "page_fault_kernel", FAULT, FAULT_PRINT),
    kind("preemptirq", "irq_disable", CALLER, CALLER_PRINT),
    kind("preemptirq", "irq_enable", CALLER, CALLER_PRINT),
    kind("preemptirq", "preempt_disable", CALLER, CALLER_PRINT),
    kind("preemptirq", "preempt_enable", CALLER, CALLER_PRINT),
    kind(
        "ftrace",
        "kernel_stack",
        &[int("int size"), field("unsigned long caller[8]", false, Stored::Addresses)],
        r#""=> %ps", (void *)REC->caller[0]"#,
    ),
    kind(
        "signal",
        "signal_generate",
        &[int("int sig"), comm("char comm[16]"), int("pid_t pid")],
        r#""sig=%d comm=%s pid=%d", REC->sig, REC->comm, REC->pid"#,
    ),
    kind(
        "cpuhp",
        "cpuhp_enter",
        &[uint("unsigned int cpu"), int("int target"), int("int idx"), wide("void * fun")],
        r#""cpu: %04u target: %3d step: %3d (%ps)", REC->cpu, REC->target, REC->idx, REC->fun"#,
    ),
    kind(
        "ftrace",
        "timerlat",
        &[uint("unsigned int seqnum"), int("int context"), wide("u64 timer_latency")],
        r#""seq:%u context:%d timer_latency:%llu", REC->seqnum, REC->context, REC->timer_latency"#,
    ),
    kind(
        "osnoise",
        "nmi_noise",
        &[wide("u64 start"), wide("u64 duration")],
        r#""start=%llu duration=%llu ns", REC->start, REC->duration"#,
    ),
    kind(
        "osnoise",
        "irq_noise",
        &[
            wide("u64 start"),
            wide("u64 duration"),
            text("__data_loc char[] desc"),
            int("int vector"),
        ],
        "\"%s:%d start=%llu duration=%llu ns\", __get_str(desc), REC->vector, REC->start, \
         REC->duration",
    ),
    kind(
        "osnoise",
        "softirq_noise",
        &[wide("u64 start"), wide("u64 duration"), int("int vector")],
        VEC_NOISE_PRINT,
    ),
    kind(
        "osnoise",
        "thread_noise",
        &[comm("char comm[16]"), wide("u64 start"), wide("u64 duration"), int("pid_t pid")],
        r#""%8s:%d start=%llu duration=%llu ns", REC->comm, REC->pid, REC->start, REC->duration"#,
    ),
    kind(
        "ftrace",
        "hwlat",
        &[wide("u64 duration"), wide("u64 outer_duration"), uint("unsigned int nmi_count")],
        "\"inner:%llu outer:%llu nmi-count:%u\", REC->duration, REC->outer_duration, \
         REC->nmi_count",
    ),
    vector("local_timer_entry"),
    vector("local_timer_exit"),
    vector("reschedule_entry"),
    vector("reschedule_exit"),
    vector("call_function_entry"),
    vector("call_function_exit"),
    vector("call_function_single_entry"),
    vector("call_function_single_exit"),
    vector("irq_work_entry"),
    vector("irq_work_exit"),
    vector("thermal_apic_entry"),
    vector("thermal_apic_exit"),
    vector("threshold_apic_entry"),
    vector("threshold_apic_exit"),
    vector("deferred_error_apic_entry"),
    vector("deferred_error_apic_exit"),
    vector("error_apic_entry"),
    vector("error_apic_exit"),
    vector("spurious_apic_entry"),
    vector("spurious_apic_exit"),
    vector("x86_platform_ipi_entry"),
    vector("x86_platform_ipi_exit"),
];

const fn vector(name: &'static str) -> Kind {
    kind("irq_vectors", name, VECTOR, VECTOR_PRINT)
}

/// Numbers that the kernel gives to events, not to its own entries.
const FIRST_ID: u16 = 100;
/// Bytes of the common fields.
pub(super) const COMMON: usize = 8;

/// The event of a name, and its number.
pub(super) fn find(name: &str) -> Option<(u16, &'static Kind)> {
    let place = KINDS.iter().position(|kind| kind.name == name)?;
    Some((FIRST_ID + u16::try_from(place).ok()?, &KINDS[place]))
}

impl Stored {
    pub(super) const fn align(self) -> usize {
        match self {
            Self::Number(bytes) => bytes as usize,
            Self::Comm => 1,
            Self::Text | Self::Mask => 4,
            Self::Addresses => 8,
        }
    }

    const fn size(self) -> usize {
        match self {
            Self::Number(bytes) => bytes as usize,
            Self::Comm => 16,
            Self::Text | Self::Mask => 4,
            // As the kernel declares it; there may be fewer, or more.
            Self::Addresses => 64,
        }
    }
}

/// The format of an event in the form of the kernel's files.
pub(super) fn format(id: u16, kind: &Kind) -> String {
    let mut text = format!(
        "name: {}\nID: {id}\nformat:\n\
         \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
         \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n",
        kind.name
    );
    let mut at = COMMON;
    for Field { declared, is_signed, stored } in kind.fields {
        at = at.next_multiple_of(stored.align());
        let _ = writeln!(
            text,
            "\tfield:{declared};\toffset:{at};\tsize:{};\tsigned:{};",
            stored.size(),
            u8::from(*is_signed)
        );
        at += stored.size();
    }
    let _ = write!(text, "\nprint fmt: {}\n", kind.print);
    text
}

/// The header of a page as 64-bit kernels have it.
pub(super) const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
     \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
     \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
     \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

/// The header of an event.
pub(super) const HEADER_EVENT: &str = "# compressed entry header\n\
     \ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n\
     \tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\
     \tdata max type_len  == 28\n";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_fields_lie_where_the_kernel_has_them() {
        let names: BTreeSet<_> = KINDS.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), KINDS.len());
        let (id, switch) = find("sched_switch").expect("a kind");
        let text = format(id, switch);
        for line in [
            "field:char prev_comm[16];\toffset:8;\tsize:16;",
            "field:long prev_state;\toffset:32;\tsize:8;\tsigned:1;",
            "field:int next_prio;\toffset:60;\tsize:4;",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
