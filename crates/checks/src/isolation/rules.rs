//! Rows: isolated CPUs and interrupts.

use rtproof_host::{CpuList, Facts, knobs::isolation as knobs};

use crate::check::{Check, Judge};
use crate::machine::{built_with, option};
use crate::profile::Choice;
use crate::value::{Absent, Applies, Want};
use crate::{Evidence, Impact, Intent};

pub(super) static RCU_NORMAL: Check = Check {
    title: "expedited RCU grace periods turned into normal ones after boot",
    why: "an expedited grace period interrupts every CPU that is not idle to have an answer at \
          once",
    source: "kernel/rcu/update.c (rcu_normal_after_boot, on with PREEMPT_RT), \
             kernel/rcu/tree_exp.h; Documentation/admin-guide/kernel-parameters.txt; tuned",
    trade_off: Some(
        "what waits for a grace period, as some changes of the network do, waits longer",
    ),
    impact: Impact::Microseconds,
    judge: Judge::value(|_| Want::is("1").or_doubtful(), Absent::WithoutOption("TREE_RCU")),
    ..Check::of(&[&knobs::RCU_NORMAL])
};

pub(super) static RCU_PATIENCE: Check = Check {
    title: "how long RCU leaves a tickless CPU alone (nohz_full_patience_delay)",
    why: "without patience RCU works on the CPU that runs the application as soon as a grace \
          period waits for it",
    source: "Documentation/admin-guide/kernel-parameters.txt, rcutree.nohz_full_patience_delay; \
             kernel/rcu/tree.c (rcu_pending); tuned, 1000 ms",
    trade_off: Some("memory that waits for a grace period is freed later"),
    impact: Impact::Microseconds,
    judge: Judge::value_where(
        |_| {
            let want = Want::at_least(1).or_doubtful().set("1000");
            want.text("more than 0 ms (tuned: 1000)")
        },
        Absent::NoSuchThing("this kernel has no such delay"),
        is_tickless,
    ),
    ..Check::of(&[&knobs::RCU_PATIENCE])
};

pub(super) static POWER_EFFICIENT: Check = Check {
    title: "work that is bound to a CPU only for speed let go (workqueue.power_efficient)",
    why: "work that an interrupt or a system call queued runs on the CPU that queued it, and comes \
          back there",
    source: "Documentation/admin-guide/kernel-parameters.txt, workqueue.power_efficient; \
             kernel/workqueue.c (WQ_POWER_EFFICIENT)",
    trade_off: Some("a little slower: the work starts on another CPU, without warm caches"),
    impact: Impact::Microseconds,
    judge: Judge::value_where(
        |_| Want::is("Y").or_doubtful().set("1").text("Y"),
        Absent::Unknown,
        has_other_cpus,
    ),
    ..Check::of(&[&knobs::POWER_EFFICIENT])
};

pub(super) static TIMER_MIGRATION: Check = Check {
    title: "timers of idle CPUs moved to others (kernel.timer_migration)",
    why: "with migration a timer that was started on an idle or tickless CPU runs on another one, \
          and perhaps on a real-time CPU. Without it, all timers that a CPU starts run there",
    source: "kernel/time/timer.c, kernel/time/hrtimer.c (get_target_base); tuned sets 0, \
             OpenShift's profile 1, to clear CPUs of timers",
    trade_off: Some(
        "the sources disagree: 0 keeps timers where they were started (tuned), 1 lets tickless \
         CPUs get rid of them (OpenShift); the profile decides",
    ),
    impact: Impact::Microseconds,
    judge: Judge::value(
        |intent| match intent.profile.choices.timer_migration {
            Choice::On => Want::is("1").or_doubtful(),
            Choice::Off => Want::is("0").or_doubtful(),
            Choice::Either => Want::one_of(&["0", "1"]).not_set().text("known"),
        },
        Absent::NoSuchThing("this kernel moves no timers"),
    ),
    ..Check::of(&[&knobs::TIMER_MIGRATION])
};

pub(super) static KPROBES: Check = Check {
    title: "probes in the kernel's code",
    why: "setting and removing a probe patches the kernel's code, which interrupts every CPU",
    source: "Documentation/trace/kprobes.rst; arch/x86/kernel/alternative.c (text_poke_bp_batch)",
    impact: Impact::Microseconds,
    judge: Judge::value(
        |_| Want::is("").or_doubtful().not_set().text("none"),
        Absent::WithoutOption("KPROBES"),
    ),
    ..Check::of(&[&knobs::KPROBES])
};

/// Concerns only machines with tickless real-time CPUs; where that is unknown, it may.
fn is_tickless(facts: &Facts, intent: &Intent) -> Applies {
    let nohz = &facts.cpus.nohz_full;
    match nohz.value().map(|cpus| cpus.intersection(&intent.rt_cpus).is_empty()) {
        Some(true) => {
            let shown = Evidence::of(nohz, crate::text::or_empty);
            Applies::No(shown, "no real-time CPU is tickless".into())
        }
        None if nohz.is_absent() && built_with(facts, "NO_HZ_FULL") == Some(false) => {
            Applies::No(option(facts, "NO_HZ_FULL"), "no CPU of this kernel is tickless".into())
        }
        _ => Applies::Yes,
    }
}

/// Concerns only machines with CPUs that work could go to.
fn has_other_cpus(facts: &Facts, intent: &Intent) -> Applies {
    let online = &facts.cpus.online;
    match online.value().map(|cpus| cpus.difference(&intent.rt_cpus).is_empty()) {
        Some(true) => {
            let shown = Evidence::of(online, CpuList::to_string);
            Applies::No(shown, "every CPU is a real-time CPU".into())
        }
        _ => Applies::Yes,
    }
}
