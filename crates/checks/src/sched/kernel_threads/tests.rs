//! Tests of the checks in `kernel_threads.rs`.

use super::*;

mod kernel_threads {
    use super::*;
    use crate::Status::{self, Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_setting, task};

    fn with(more: Vec<RtTask>) -> Facts {
        let mut facts = good();
        let mut tasks = facts.rt_tasks.value().cloned().unwrap();
        tasks.extend(more);
        facts.rt_tasks = Reading::known(facts.rt_tasks.path.clone(), tasks);
        facts
    }

    fn status(check: &Check, more: Vec<RtTask>) -> Status {
        check.judge(&with(more), &intent()).status
    }

    #[test]
    fn interrupt_threads_by_rank_and_place() {
        assert_eq!(status(&IRQ_THREAD_PRIO, vec![]), Good);
        let thread = |priority, on: &[u32]| vec![task(300, "irq/30-eth1", priority, on, true)];
        assert_eq!(status(&IRQ_THREAD_PRIO, thread(50, &[2])), Good);
        assert_eq!(status(&IRQ_THREAD_PRIO, thread(80, &[2])), Doubtful);
        assert_eq!(status(&IRQ_THREAD_PRIO, thread(90, &[0, 1])), Good);
        let finding = IRQ_THREAD_PRIO.judge(&with(thread(90, &[2])), &intent());
        assert_eq!(
            finding.summary,
            "1 interrupt thread may run on CPUs 2-3 at or above your FIFO 80: irq/30-eth1"
        );
        let low = Intent { priority: 40, ..intent() };
        assert_eq!(IRQ_THREAD_PRIO.judge(&with(thread(50, &[2])), &low).status, Doubtful);
    }

    #[test]
    fn softirq_threads() {
        let finding = SOFTIRQ_PRIO.judge(&with(vec![]), &intent());
        assert_eq!(finding.status, Good);
        assert!(finding.summary.ends_with("2 ktimers SCHED_FIFO 1"), "{}", finding.summary);
        let thread = |priority| vec![task(300, "ksoftirqd/2", priority, &[2], true)];
        assert_eq!(status(&SOFTIRQ_PRIO, thread(2)), Good);
        let finding = SOFTIRQ_PRIO.judge(&with(thread(90)), &intent());
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.remedies[0].to_string(), "chrt --fifo --pid 11 300");
        let none = Intent { priority: 0, ..intent() };
        let finding = SOFTIRQ_PRIO.judge(&with(vec![]), &none);
        assert_eq!(finding.status, Doubtful, "ktimers are above SCHED_OTHER");
    }

    #[test]
    fn rcu_threads_and_the_parameter() {
        let finding = RCU_KTHREAD_PRIO.judge(&with(vec![]), &intent());
        assert_eq!(finding.status, Good);
        assert!(finding.summary.starts_with("rcutree.kthread_prio is 1; below"), "{finding:?}");
        let ahead = vec![task(300, "rcub/2", 85, &[0, 1, 2, 3], true)];
        let finding = RCU_KTHREAD_PRIO.judge(&with(ahead), &intent());
        assert_eq!(finding.status, Doubtful);
        let parameter = "rcutree.kthread_prio=11".into();
        assert_eq!(finding.remedies, [Remedy::Boot { parameter }]);
        let mut facts = good();
        let knob = &cpu::RCU_KTHREAD_PRIO;
        set_setting(&mut facts, knob, Reading::denied("/x", "EACCES"));
        assert_eq!(RCU_KTHREAD_PRIO.judge(&facts, &intent()).status, Unknown);
        set_setting(&mut facts, knob, Reading::known("/x", "high".into()));
        assert_eq!(RCU_KTHREAD_PRIO.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn a_pid_namespace_is_not_the_machine() {
        let mut facts = good();
        facts.rt_tasks = Reading::known("/proc/*/task/*/stat", Vec::new());
        for check in [&IRQ_THREAD_PRIO, &SOFTIRQ_PRIO, &RCU_KTHREAD_PRIO] {
            assert_eq!(check.judge(&facts, &intent()).status, Unknown);
        }
    }
}

mod autogroup {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};

    fn judge(value: &str, priority: u32) -> Finding {
        let mut facts = good();
        fill_setting(&mut facts, &cpu::AUTOGROUP, value);
        AUTOGROUP.judge(&facts, &Intent { priority, ..intent() })
    }

    #[test]
    fn it_concerns_ordinary_tasks_only() {
        assert_eq!(judge("1", 80).status, Good);
        assert_eq!(judge("1", 0).status, Doubtful);
        assert_eq!(judge("0", 0).status, Good);
        assert_eq!(judge("x", 80).status, Unknown);
    }

    #[test]
    fn a_kernel_without_it_and_a_refusal() {
        let mut facts = good();
        let knob = &cpu::AUTOGROUP;
        set_setting(&mut facts, knob, Reading::absent("/proc/sys/kernel/sched_autogroup_enabled"));
        assert_eq!(AUTOGROUP.judge(&facts, &intent()).status, NotApplicable);
        facts.kernel.config = Reading::absent("/proc/config.gz");
        assert_eq!(AUTOGROUP.judge(&facts, &intent()).status, Unknown);
        set_setting(&mut facts, knob, Reading::denied("/x", "EACCES"));
        assert_eq!(AUTOGROUP.judge(&facts, &intent()).status, Unknown);
    }
}

mod features {
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

mod irq_thread_affinity {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent, irq, task};

    fn with(irq: Irq, on: &[u32]) -> Facts {
        let mut facts = good();
        let mut tasks = facts.rt_tasks.value().cloned().unwrap();
        tasks.push(task(300, "irq/30-s-eth1", 50, on, true));
        facts.rt_tasks = Reading::known(facts.rt_tasks.path.clone(), tasks);
        let mut irqs = facts.irqs.irqs.value().cloned().unwrap();
        irqs.push(irq);
        facts.irqs.irqs = Reading::known(facts.irqs.irqs.path.clone(), irqs);
        facts
    }

    fn judge(facts: &Facts) -> Finding {
        IRQ_THREAD_AFFINITY.judge(facts, &intent())
    }

    #[test]
    fn threads_follow_their_interrupts() {
        assert_eq!(judge(&good()).status, Good);
        assert_eq!(judge(&with(irq(30, "eth1", &[2], &[2]), &[2])).status, Good);
        assert_eq!(judge(&with(irq(30, "eth1", &[0], &[0]), &[0])).status, Good);
        let finding = judge(&with(irq(30, "eth1", &[0, 1], &[0]), &[0, 1, 2, 3]));
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.ends_with("does not go: irq/30-s-eth1"), "{}", finding.summary);
        assert_eq!(finding.remedies[0].to_string(), "taskset -cp 0 300");
        let idle = Irq { count: 0, ..irq(30, "eth1", &[0, 1], &[0]) };
        assert_eq!(judge(&with(idle, &[0, 1, 2, 3])).status, Good);
    }

    #[test]
    fn an_interrupt_that_cannot_be_read_is_unknown() {
        let mut other = irq(30, "eth1", &[0], &[0]);
        other.effective = Reading::absent(other.effective.path.clone());
        assert_eq!(judge(&with(other.clone(), &[2])).status, Doubtful, "the request tells");
        other.effective = Reading::denied(other.effective.path.clone(), "EACCES");
        assert_eq!(judge(&with(other, &[2])).status, Unknown);
        let mut facts = with(irq(30, "eth1", &[2], &[2]), &[2]);
        facts.irqs.irqs = Reading::denied("/proc/interrupts", "EACCES");
        assert_eq!(judge(&facts).status, Unknown);
    }

    #[test]
    fn numbers_of_threads() {
        assert_eq!(number("irq/24-nvme0q1"), Some(24));
        assert_eq!(number("irq/9-s-acpi"), Some(9));
        assert_eq!(number("ksoftirqd/0"), None);
    }
}

mod rt_throttling {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, good_stock, intent, set_cmdline, set_config};
    use rtproof_host::Reading;

    fn judge(facts: &Facts) -> Finding {
        RT_THROTTLING.judge(facts, &intent())
    }

    fn with_runtime(mut facts: Facts, runtime_us: i64) -> Facts {
        let path = "/proc/sys/kernel/sched_rt_runtime_us";
        facts.sched.rt_runtime_us = Reading::known(path, runtime_us);
        facts
    }

    #[test]
    fn before_6_12_the_limit_decides() {
        assert_eq!(judge(&good_stock()).status, Good);
        let finding = judge(&with_runtime(good_stock(), 950_000));
        assert_eq!(finding.status, Doubtful);
        assert_eq!(
            finding.summary,
            "real-time tasks are stopped for 50 ms of each 1 s once they use 950 ms of it"
        );
        assert_eq!(judge(&with_runtime(good_stock(), 500_000)).status, Bad);
        assert_eq!(judge(&with_runtime(good_stock(), 0)).status, Bad);
        assert_eq!(judge(&with_runtime(good_stock(), 1_000_000)).status, Good);
        let mut facts = good_stock();
        facts.sched.rt_runtime_us = Reading::denied("/proc/sys/kernel", "EACCES");
        assert_eq!(judge(&facts).status, Unknown);
    }

    #[test]
    fn from_6_12_nothing_is_throttled_without_groups() {
        let finding = judge(&with_runtime(good(), 950_000));
        assert_eq!(finding.status, NotApplicable);
        assert!(finding.evidence[1].value.contains("RT_GROUP_SCHED is not set"), "{finding:?}");
        assert_eq!(judge(&with_runtime(good(), -1)).status, Good);
        let mut facts = with_runtime(good(), 950_000);
        facts.kernel.config = Reading::absent("/proc/config.gz");
        assert_eq!(judge(&facts).status, Unknown);
        facts.kernel.version = Reading::absent("/proc/sys/kernel/osrelease");
        assert_eq!(judge(&facts).status, Unknown);
    }

    #[test]
    fn a_profile_may_want_the_limit() {
        let profile = crate::Profile::of(crate::profile::WorkloadKind::Audio);
        let audio = Intent { profile, ..intent() };
        let judge = |facts: &Facts| RT_THROTTLING.judge(facts, &audio).status;
        assert_eq!(judge(&with_runtime(good_stock(), 950_000)), Good);
        assert_eq!(judge(&with_runtime(good_stock(), 500_000)), Bad);
        assert_eq!(judge(&good_stock()), Doubtful);
        assert_eq!(judge(&good()), NotApplicable);
    }

    #[test]
    fn group_scheduling_keeps_the_old_limit() {
        let mut facts = with_runtime(good(), 950_000);
        set_config(&mut facts, "RT_GROUP_SCHED", Some("y"));
        assert_eq!(judge(&facts).status, Doubtful);
        let finding = judge(&with_runtime(facts.clone(), -1));
        assert_eq!(finding.status, Good);
        assert!(finding.summary.contains("SCHED_FIFO is refused"), "{}", finding.summary);
        set_cmdline(&mut facts, "rt_group_sched=0");
        assert_eq!(judge(&facts).status, Doubtful, "6.12 does not know rt_group_sched");
        facts.kernel.version = Reading::known("/proc/sys/kernel/osrelease", (6, 16));
        assert_eq!(judge(&facts).status, NotApplicable);
        set_cmdline(&mut facts, "quiet");
        assert_eq!(judge(&facts).status, Doubtful);
        set_config(&mut facts, "RT_GROUP_SCHED_DEFAULT_DISABLED", Some("y"));
        assert_eq!(judge(&facts).status, NotApplicable);
    }
}

mod watchdog_daemon {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{fill_setting, good, good_stock, intent, set_config, set_setting};
    use rtproof_host::{Reading, knobs::cpu::WATCHDOG_STATE};

    fn judge(facts: &Facts) -> Finding {
        WATCHDOG_DAEMON.judge(facts, &intent())
    }

    #[test]
    fn it_is_needed_where_nothing_limits() {
        let mut facts = good();
        assert_eq!(judge(&facts).status, Good);
        assert_eq!(judge(&facts).summary, "a watchdog is armed");
        fill_setting(&mut facts, &WATCHDOG_STATE, "inactive");
        assert_eq!(judge(&facts).status, Doubtful);
        let mut servers = facts.sched.fair_server.value().cloned().unwrap();
        for server in &mut servers {
            server.runtime_ns = 50_000_000;
        }
        facts.sched.fair_server = Reading::known(facts.sched.fair_server.path.clone(), servers);
        assert!(judge(&facts).summary.contains("fair server"));
        assert_eq!(judge(&facts).status, Good);
        let mut facts = good_stock();
        fill_setting(&mut facts, &WATCHDOG_STATE, "inactive");
        assert_eq!(judge(&facts).status, Doubtful);
        let path = facts.sched.rt_runtime_us.path.clone();
        facts.sched.rt_runtime_us = Reading::known(path, 950_000);
        assert_eq!(judge(&facts).status, Good);
    }

    #[test]
    fn groups_keep_throttling() {
        let mut facts = good();
        set_config(&mut facts, "RT_GROUP_SCHED", Some("y"));
        fill_setting(&mut facts, &WATCHDOG_STATE, "inactive");
        assert_eq!(judge(&facts).status, Doubtful);
        facts.sched.rt_runtime_us = Reading::known("/x", 950_000);
        assert_eq!(judge(&facts).status, Good);
    }

    #[test]
    fn no_watchdog_and_none_that_can_be_seen() {
        let mut facts = good();
        let lacking = Some(Reading::known("/sys/class/watchdog", "holds no *".to_owned()));
        facts
            .settings
            .insert(WATCHDOG_STATE.id.into(), Setting { values: vec![], missing_from: lacking });
        assert_eq!(judge(&facts).status, Doubtful);
        facts.settings.clear();
        assert_eq!(judge(&facts).status, Unknown);
        let mut facts = good();
        set_setting(&mut facts, &WATCHDOG_STATE, Reading::denied("/x", "EACCES"));
        assert_eq!(judge(&facts).status, Unknown);
        let mut facts = good();
        facts.sched.fair_server = Reading::denied("/x", "lockdown");
        fill_setting(&mut facts, &WATCHDOG_STATE, "inactive");
        assert_eq!(judge(&facts).status, Unknown);
    }
}
