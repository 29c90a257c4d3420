//! Traces that others recorded: the kernel's own tracers and trace-cmd watch what rtproof measures
//! while a cause is planted, each with other events and in other forms; `explain` reads them all.

use std::fmt::Write;

use super::planted::{
    DAEMON, DELIVERY, HARD_IRQ, INTERRUPT, IRQS_OFF, LOCK, NEIGHBOUR, PREEMPT_OFF, Planted,
    SOFT_IRQ,
};
use crate::{
    case::{Case, Tier},
    machine::Machine,
};

/// What an instance of tracefs records: its name, its tracer, its events.
const EVENTS: &[(&str, &str, &str)] = &[
    ("everything", "nop", "sched irq irq_vectors timer workqueue power signal nmi ipi"),
    ("wakeup_rt", "wakeup_rt", ""),
];
/// The same for tracers that cost so much that each has a boot of its own.
const FUNCTIONS: &[(&str, &str, &str)] =
    &[("functions", "function", "sched/sched_switch sched/sched_waking irq")];
const TIMERLAT: &[(&str, &str, &str)] = &[("timerlat", "timerlat", "osnoise")];

/// How the text is printed: the options that are set for it.
const PRINTED: &[(&str, &str)] = &[
    ("plain", ""),
    ("latency", "latency-format"),
    ("verbose", "latency-format verbose"),
    ("bare", "noirq-info"),
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for planted in [DAEMON, NEIGHBOUR, LOCK, IRQS_OFF, PREEMPT_OFF, HARD_IRQ, INTERRUPT] {
        cases.push(case(planted, "rt-6.1"));
    }
    for planted in [DAEMON, IRQS_OFF, PREEMPT_OFF, HARD_IRQ, SOFT_IRQ, DELIVERY] {
        cases.push(case(planted, "stock-6.1"));
    }
    for planted in [DAEMON, IRQS_OFF, HARD_IRQ, SOFT_IRQ] {
        cases.push(case(planted, "stock-7.2"));
    }
    cases
}

fn case(planted: Planted, kernel: &'static str) -> Case {
    let plant = || (planted.plant)().cpu(0).lasting_ms(1_500).times(12);
    Case::new(
        format!("foreign/{}/{kernel}", planted.name),
        "traces of others are explained right, and nothing is certain that they cannot show",
        Machine::new(kernel),
    )
    .tier(Tier::Two)
    .limit_s(300)
    .program("trace-cmd")
    .plant(plant())
    .script(script(EVENTS))
    .then_again()
    .plant(plant())
    .script(script(FUNCTIONS))
    .then_again()
    .plant(plant())
    .script(script(TIMERLAT))
    .unplanted("planted spikes")
}

fn script(recorded: &[(&str, &str, &str)]) -> String {
    let mut script = String::from(
        "T=/sys/kernel/tracing
         record() {
             d=$T/instances/$1
             mkdir $d
             echo 0 >$d/tracing_on
             echo mono >$d/trace_clock
             echo 16384 >$d/buffer_size_kb
             for event in $3; do echo 1 >$d/events/$event/enable; done 2>/dev/null
             for function in '*rtproof_plant*' hrtimer_interrupt net_rx_action; do
                 [ $2 != function ] || echo $function >>$d/set_ftrace_filter
             done 2>/dev/null
             echo $2 >$d/current_tracer || rmdir $d
         }
         print_as() {
             for d in $T/instances/*; do
                 for option in $2; do echo $option >$d/trace_options; done
                 cat $d/trace >/host/${d##*/}.$1.txt
                 echo nolatency-format >$d/trace_options
                 echo noverbose >$d/trace_options
                 echo irq-info >$d/trace_options
             done
         }
         [ ! -e /host/module.ko ] || insmod /host/module.ko 2>/dev/null
         echo 0 >$T/tracing_max_latency\n",
    );
    for (name, tracer, events) in recorded {
        let _ = writeln!(script, "record {name} {tracer} '{events}'");
    }
    script.push_str(
        "for d in $T/instances/*; do echo 1 >$d/tracing_on; done
         prove run --for 2s --period 1ms --budget 200us --load idle --cpus 0
         for d in $T/instances/*; do echo 0 >$d/tracing_on; done\n",
    );
    for (name, options) in PRINTED {
        let _ = writeln!(script, "print_as {name} '{options}'");
    }
    script.push_str(
        "[ ! -e $T/instances/everything ] || {
             trace-cmd extract -B everything -o /tmp/everything.dat
             cp /tmp/everything.dat /host/
         } >/host/extract.txt 2>&1",
    );
    script
}
