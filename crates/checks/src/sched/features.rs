//! Features of the scheduler that real-time tasks feel: one check for each, all in one file of
//! debugfs.

use rtproof_host::knobs::sched::FEATURES;
use rtproof_host::{Facts, facts::kernel::Preemption};

use super::servers;
use crate::check::{Check, Judge};
use crate::draft::Draft;
use crate::machine::{built_with, option, since};
use crate::{Evidence, Finding, Impact, Remedy, Status};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Only {
    PreemptRt,
    Throttling,
}

pub(super) static TTWU_QUEUE: Check = Check {
    id: "sched-features-ttwu-queue",
    title: "wakeups from other CPUs, queued or done at once",
    why: "wakeups queued for another CPU are worked off there in a row, in an interrupt that holds \
          up the real-time task",
    source: "kernel/sched/features.h (off with PREEMPT_RT); Gleixner, \"sched: Disable TTWU_QUEUE \
             on RT\", linux-kernel, September 2021 (maximum latencies up to 5 times and more with \
             it)",
    judge: Judge::Ask(|draft, facts, _| {
        feature(draft, facts, "TTWU_QUEUE", false, Only::PreemptRt, Status::Bad)
    }),
    ..Check::NEW
};

pub(super) static RT_PUSH_IPI: Check = Check {
    id: "sched-features-rt-push-ipi",
    title: "how waiting real-time tasks move to a CPU that gets free",
    why: "without it, every CPU whose priority falls takes the lock of the CPU where a real-time \
          task waits, all at the same time",
    source: "kernel/sched/features.h (best for PREEMPT_RT, its default there); kernel/sched/rt.c \
             (pull_rt_task)",
    judge: Judge::Ask(|draft, facts, _| {
        feature(draft, facts, "RT_PUSH_IPI", true, Only::PreemptRt, Status::Doubtful)
    }),
    ..Check::NEW
};

pub(super) static RT_RUNTIME_SHARE: Check = Check {
    id: "sched-features-rt-runtime-share",
    impact: Impact::Milliseconds,
    title: "real-time time borrowed between CPUs",
    why: "a CPU that borrows the real-time time of others never throttles, and the CPUs that lent \
          it throttle earlier",
    source: "kernel/sched/rt.c (balance_runtime); kernel/sched/features.h (off by default)",
    judge: Judge::Ask(|draft, facts, _| {
        feature(draft, facts, "RT_RUNTIME_SHARE", false, Only::Throttling, Status::Doubtful)
    }),
    ..Check::NEW
};

/// Whether a feature is set as wanted: on or off, and where it is decided.
fn feature(
    draft: Draft,
    facts: &Facts,
    name: &str,
    on: bool,
    only: Only,
    otherwise: Status,
) -> Finding {
    let (set, unset) = (name.to_owned(), format!("NO_{name}"));
    let (wanted, unwanted) = if on { (set, unset) } else { (unset, set) };
    let draft = draft.wants(&wanted);
    let draft = match only {
        Only::PreemptRt => {
            let model = &facts.kernel.preemption;
            let draft = draft.read(model, |model| match model {
                Preemption::Rt => "PREEMPT_RT".into(),
                _ => "not PREEMPT_RT".into(),
            });
            match model.value() {
                Some(Preemption::Rt) => draft,
                Some(_) => {
                    return draft.not_applicable(
                        "it is a choice of PREEMPT_RT: without it, the kernel's own is right",
                    );
                }
                None => return draft.blind(model),
            }
        }
        Only::Throttling => {
            let is_throttled = built_with(facts, "RT_GROUP_SCHED") == Some(true);
            if since(facts, (6, 12)) == Some(true)
                && built_with(facts, "RT_GROUP_SCHED") == Some(false)
            {
                return draft
                    .read(&facts.kernel.version, |(major, minor)| format!("{major}.{minor}"))
                    .saw([option(facts, "RT_GROUP_SCHED")])
                    .not_applicable("from 6.12 CPUs have no real-time time to lend");
            }
            draft.saw(is_throttled.then(|| option(facts, "RT_GROUP_SCHED")))
        }
    };
    let features = &facts.sched.features;
    let has = |name: &str| features.value().is_some_and(|all| all.iter().any(|f| f == name));
    let shown = [&wanted, &unwanted].into_iter().find(|name| has(name));
    let draft = draft.saw([Evidence::of(features, |_| match shown {
        Some(name) => name.clone(),
        None => format!("neither {wanted} nor {unwanted}"),
    })]);
    if features.value().is_none() {
        return draft.remedies([servers::readable(facts, features)]).blind(features);
    }
    match shown {
        Some(name) if *name == wanted => draft.good(name.clone()),
        Some(name) => draft
            .remedies([Remedy::set(&FEATURES, vec![features.path.clone()], wanted.clone())])
            .status(otherwise, format!("{name}; wanted: {wanted}")),
        None => draft.not_applicable(format!("this kernel has no {}", name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, good_stock, intent};
    use rtproof_host::Reading;

    const PATH: &str = "/sys/kernel/debug/sched/features";

    fn judge(feature: &Check, mut facts: Facts, features: &[&str]) -> Finding {
        let features = features.iter().map(|&name| name.to_owned()).collect();
        facts.sched.features = Reading::known(PATH, features);
        feature.judge(&facts, &intent())
    }

    #[test]
    fn queued_wakeups_are_bad_with_preempt_rt() {
        let finding = judge(&TTWU_QUEUE, good(), &["TTWU_QUEUE"]);
        assert_eq!(finding.status, Bad);
        let value = "NO_TTWU_QUEUE".to_owned();
        assert_eq!(finding.remedies, [Remedy::set(&FEATURES, vec![PATH.into()], value)]);
        assert_eq!(judge(&TTWU_QUEUE, good(), &["NO_TTWU_QUEUE"]).status, Good);
        assert_eq!(judge(&TTWU_QUEUE, good_stock(), &["TTWU_QUEUE"]).status, NotApplicable);
    }

    #[test]
    fn push_by_interrupt() {
        assert_eq!(judge(&RT_PUSH_IPI, good(), &["RT_PUSH_IPI"]).status, Good);
        assert_eq!(judge(&RT_PUSH_IPI, good(), &["NO_RT_PUSH_IPI"]).status, Doubtful);
        assert_eq!(judge(&RT_PUSH_IPI, good(), &["X"]).status, NotApplicable);
    }

    #[test]
    fn lent_time() {
        assert_eq!(judge(&RT_RUNTIME_SHARE, good_stock(), &["RT_RUNTIME_SHARE"]).status, Doubtful);
        assert_eq!(judge(&RT_RUNTIME_SHARE, good_stock(), &["NO_RT_RUNTIME_SHARE"]).status, Good);
        assert_eq!(judge(&RT_RUNTIME_SHARE, good(), &["RT_RUNTIME_SHARE"]).status, NotApplicable);
    }

    #[test]
    fn debugfs_that_cannot_be_read_is_unknown() {
        let mut facts = good();
        facts.sched.features = Reading::denied(PATH, "lockdown");
        assert_eq!(TTWU_QUEUE.judge(&facts, &intent()).status, Unknown);
        assert_eq!(RT_PUSH_IPI.judge(&facts, &intent()).status, Unknown);
        let mut facts = good_stock();
        facts.sched.features = Reading::absent(PATH);
        assert_eq!(RT_RUNTIME_SHARE.judge(&facts, &intent()).status, Unknown);
    }
}
