//! Does the tick stop on the real-time CPUs, where the kind of work wants that?

use rtproof_host::{CpuList, Facts};

use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::Draft;
use crate::machine::{built_with, option};
use crate::profile::Choice;
use crate::text;
use crate::{Finding, Impact, Intent, Remedy, When};

pub(super) static NOHZ_FULL: Check = Check {
    id: "nohz-full",
    title: "timer tick stopped on CPUs with one task (nohz_full)",
    why: "the timer tick interrupts a task that never sleeps HZ times a second",
    source: "Documentation/timers/no_hz.rst; kernel/sched/isolation.c; tuned, profile realtime; \
             Documentation/core-api/real-time/kernel-configuration.rst (periodic loops: better \
             without)",
    trade_off: Some(
        "entering and leaving the kernel costs more on such a CPU, which a loop that sleeps each \
         period does all the time: good for tasks that never sleep",
    ),
    impact: Impact::Microseconds,
    when: When::Boot,
    needs: Needs::OtherCpus,
    wanted: Wanted::Of(|intent| match intent.profile.choices.nohz_full {
        Choice::On => format!("{} tickless", text::cpus(&intent.rt_cpus)),
        Choice::Off => "no real-time CPU tickless".into(),
        Choice::Either => "known, and never every CPU".into(),
    }),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let reading = &facts.cpus.nohz_full;
    let draft = draft.read(reading, text::or_empty);
    let Some(tickless) = reading.value() else {
        if reading.is_absent() && built_with(facts, "NO_HZ_FULL") == Some(false) {
            let draft = draft.saw([option(facts, "NO_HZ_FULL")]);
            // Where the profile wants it, `config-nohz` says so: once is enough.
            return draft.not_applicable("this kernel is built without CONFIG_NO_HZ_FULL");
        }
        return draft.blind(reading);
    };
    let is_all = |online: &CpuList| !online.is_empty() && online.difference(tickless).is_empty();
    if facts.cpus.online.value().is_some_and(is_all) {
        return draft
            .bad(format!("{} tickless: no CPU is left to keep the time", text::cpus(tickless)));
    }
    let on = tickless.intersection(&intent.rt_cpus);
    let open = intent.rt_cpus.difference(tickless);
    let parameter = format!("nohz_full={}", tickless.union(&intent.rt_cpus));
    match intent.profile.choices.nohz_full {
        Choice::On if !open.is_empty() => draft
            .remedies([Remedy::Boot { parameter }])
            .doubtful(format!("the real-time {} tick", text::cpus(&open))),
        Choice::Off if !on.is_empty() => draft
            .remedies([Remedy::Unboot { parameter: "nohz_full".into() }])
            .doubtful(format!("{} tickless: each system call costs more", text::cpus(&on))),
        _ if on.is_empty() => draft.good("the real-time CPUs tick"),
        _ => draft.good(format!("{} tickless", text::cpus(&on))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;
    use crate::Status::{self, Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::profile::Kind;
    use crate::testing::{cpus, good, intent, set_config};
    use rtproof_host::Reading;

    fn with(tickless: &[u32], kind: Kind) -> Status {
        let mut facts = good();
        facts.cpus.nohz_full = Reading::known("/sys/devices/system/cpu/nohz_full", cpus(tickless));
        let intent = Intent { profile: Profile::of(kind), ..intent() };
        NOHZ_FULL.judge(&facts, &intent).status
    }

    #[test]
    fn the_kind_of_work_decides() {
        for kind in [Kind::Periodic, Kind::Audio] {
            assert_eq!(with(&[], kind), Good);
        }
        assert_eq!(with(&[2, 3], Kind::Periodic), Good);
        assert_eq!(with(&[2, 3], Kind::Audio), Doubtful);
        assert_eq!(with(&[2], Kind::BusyPoll), Doubtful);
        assert_eq!(with(&[0, 1, 2, 3], Kind::BusyPoll), Bad);
    }

    #[test]
    fn a_kernel_without_it_and_a_file_that_is_not_there() {
        let mut facts = good();
        facts.cpus.nohz_full = Reading::absent("/sys/devices/system/cpu/nohz_full");
        assert_eq!(NOHZ_FULL.judge(&facts, &intent()).status, Unknown);
        set_config(&mut facts, "NO_HZ_FULL", None);
        for kind in [Kind::Periodic, Kind::BusyPoll] {
            let intent = Intent { profile: Profile::of(kind), ..intent() };
            assert_eq!(NOHZ_FULL.judge(&facts, &intent).status, NotApplicable);
        }
    }
}
