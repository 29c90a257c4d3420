//! Do the kernel's workers that are bound to no CPU keep off the real-time ones?
//!
//! A mask may name CPUs that the machine could have and does not: only real-time CPUs in it count.

use rtproof_host::{
    CpuList, Facts, Knob, Reading, facts::settings::Value, knobs::isolation as knobs,
};

use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::Draft;
use crate::setting;
use crate::text;
use crate::value::{grouped, mask};
use crate::{Finding, Intent, Remedy};

pub(super) static WORKQUEUE_CPUMASK: Check = Check {
    id: "workqueue-cpumask",
    title: "CPUs of unbound kernel workers",
    why: "a kworker that runs on a real-time CPU takes its caches, and its time where the \
          application sleeps or does not run as real-time task",
    source: "Documentation/core-api/workqueue.rst; kernel/workqueue.c (wq_unbound_cpumask); CentOS \
             Stream 9, merge request 2753 (7 µs for a switch to a kworker, more than 50 µs in a \
             guest); tuned, 00-tuned-pre-udev.sh",
    knobs: &[&knobs::WORKQUEUE_CPUMASK],
    needs: Needs::OtherCpus,
    wanted: Wanted::Of(|intent| format!("none of {}", text::cpus(&intent.rt_cpus))),
    judge: Judge::Ask(|draft, facts, intent| {
        judge(draft, facts, intent, &knobs::WORKQUEUE_CPUMASK)
    }),
    ..Check::NEW
};

pub(super) static WRITEBACK_CPUMASK: Check = Check {
    id: "writeback-cpumask",
    title: "CPUs of the workers that write dirty pages back",
    why: "flushing takes long, and its worker has a mask of its own beside that of all workers",
    source: "mm/backing-dev.c (bdi_wq, WQ_SYSFS); Documentation/core-api/workqueue.rst; tuned, \
             profile cpu-partitioning",
    knobs: &[&knobs::WRITEBACK_CPUMASK],
    needs: Needs::OtherCpus,
    wanted: Wanted::Of(|intent| format!("none of {}", text::cpus(&intent.rt_cpus))),
    judge: Judge::Ask(judge_writeback),
    ..Check::NEW
};

/// The mask of one queue is cut by the mask of all: that one keeps it off, too.
fn judge_writeback(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let values = setting::all(facts, &knobs::WRITEBACK_CPUMASK);
    let all = setting::all(facts, &knobs::WORKQUEUE_CPUMASK);
    let is_off = |value: &&Value| {
        let cpus = value.reading.value().and_then(|text| CpuList::parse_mask(text).ok());
        cpus.is_some_and(|cpus| cpus.intersection(&intent.rt_cpus).is_empty())
    };
    let is_known = values.iter().any(|value| value.reading.value().is_some());
    let is_own_off = values.iter().all(|value| is_off(&value));
    if is_known && !is_own_off && all.iter().any(|v| is_off(&v)) {
        let all: Vec<&Value> = all.iter().collect();
        return draft.saw(grouped(&all)).good("cut by the mask of all unbound workers");
    }
    let unseen = |value: &&Value| value.reading.value().is_none() && !value.reading.is_absent();
    if let Some(unseen) = all.iter().find(unseen).filter(|_| is_known && !is_own_off) {
        return draft.saw(grouped(&values.iter().collect::<Vec<_>>())).blind(&unseen.reading);
    }
    judge(draft, facts, intent, &knobs::WRITEBACK_CPUMASK)
}

fn judge(draft: Draft, facts: &Facts, intent: &Intent, knob: &'static Knob) -> Finding {
    let pattern = knob.patterns().next().unwrap_or(knob.id);
    let values: Vec<&Value> = setting::all(facts, knob).iter().collect();
    let draft = draft.saw(grouped(&values));
    let Some(value) = values.first() else {
        return draft.blind(&Reading::<String>::denied(pattern, "not asked"));
    };
    let path = &value.reading.path;
    let cpus = value.reading.clone().and_then(|path, text| match CpuList::parse_mask(&text) {
        Ok(cpus) if !cpus.is_empty() => Reading::known(path, cpus),
        _ => Reading::malformed(path, &text, "a mask of CPUs"),
    });
    let Some(cpus) = cpus.value() else {
        return draft.blind(&cpus);
    };
    let on = cpus.intersection(&intent.rt_cpus);
    if on.is_empty() {
        return draft.good(format!("workers off {}", text::cpus(&intent.rt_cpus)));
    }
    let write = Remedy::set(knob, vec![path.clone()], mask(&intent.housekeeping));
    let boot = knob.boot.map(|boot| boot.replace("{}", &intent.housekeeping.to_string()));
    let boot = boot.map(|parameter| Remedy::Boot { parameter });
    draft
        .remedies([write].into_iter().chain(boot))
        .doubtful(format!("workers may run on {}", text::cpus(&on)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_setting};

    fn with(all: &str, writeback: &str) -> [Status; 2] {
        let mut facts = good();
        let known = |text: &str| Reading::known("x", text.to_owned());
        set_setting(&mut facts, &knobs::WORKQUEUE_CPUMASK, known(all));
        set_setting(&mut facts, &knobs::WRITEBACK_CPUMASK, known(writeback));
        [&WORKQUEUE_CPUMASK, &WRITEBACK_CPUMASK].map(|c| c.judge(&facts, &intent()).status)
    }

    #[test]
    fn cpus_that_the_machine_could_have_do_not_count() {
        assert_eq!(with("3", "3"), [Good, Good]);
        assert_eq!(with("ffffffff,fffffff3", "ffffffff,fffffff3"), [Good, Good]);
        assert_eq!(with("f", "f"), [Doubtful, Doubtful]);
        assert_eq!(with("f", "3"), [Doubtful, Good]);
        assert_eq!(with("3", "f"), [Good, Good]);
        assert_eq!(with("x", "x"), [Unknown, Unknown]);
    }
}
