//! Findings for tests.

use rtproof_host::{CpuList, knobs::power::GOVERNOR};
use rtproof_judge::{Evidence, Finding, Impact, Remedy, Status, When};

/// Findings of every status and every kind of remedy.
pub(super) fn all(name: &str) -> Vec<Finding> {
    let finding = |check: &str, status, summary: &str, remedies: Vec<Remedy>| Finding {
        check: check.into(),
        status,
        summary: summary.into(),
        wanted: "performance".into(),
        cpus: (status == Status::Bad).then(|| CpuList::new([2, 3])),
        evidence: vec![Evidence {
            path: "/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor".into(),
            value: "powersave".into(),
        }],
        why:
            "A slow clock makes the wake-up path longer, and a change of frequency halts the core \
              for tens of microseconds."
                .into(),
        source: "Documentation/admin-guide/pm/cpufreq.rst; measured in facts/knobs.md 2.3".into(),
        when: match remedies.first() {
            Some(Remedy::Boot { .. }) => When::Boot,
            Some(Remedy::Manual { .. }) => When::Firmware,
            _ => When::Now,
        },
        remedies,
        impact: Impact::Tens,
        trade_off: None,
        skipped: None,
    };
    let write = |n: u32| {
        let path = |cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        Remedy::set(&GOVERNOR, (2..2 + n).map(path).collect(), "performance")
    };
    let unit = Remedy::Unit { unit: "irqbalance.service".into(), action: "disable --now".into() };
    let boot = Remedy::Boot { parameter: "isolcpus=managed_irq,domain,2-3".into() };
    let file = Remedy::File {
        path: "/etc/security/limits.d/rt.conf".into(),
        line: "@realtime - rtprio 98".into(),
    };
    let manual = Remedy::Manual {
        text: "Switch SMT off in the firmware, or keep the siblings idle.".into(),
    };
    let task = format!("{name}/412 runs at FIFO 99, above the measured priority 98");
    vec![
        finding(
            "cpufreq-governor",
            Status::Bad,
            "CPUs 2-3 run the powersave governor",
            vec![write(2)],
        ),
        finding(
            "irqbalance",
            Status::Bad,
            "irqbalance runs and moves interrupts to real-time CPUs",
            vec![unit],
        ),
        finding(
            "isolation",
            Status::Doubtful,
            "CPUs 2-3 are not isolated from the scheduler",
            vec![boot],
        ),
        finding(
            "limits-rtprio",
            Status::Bad,
            "This user may not use real-time priorities",
            vec![file],
        ),
        finding("smt", Status::Bad, "CPUs 2-3 share their cores with CPUs 6-7", vec![manual]),
        finding("rogue-rt-tasks", Status::Doubtful, &task, Vec::new()),
        finding(
            "fair-server",
            Status::Unknown,
            "/sys/kernel/debug/sched/fair_server: refused: Permission denied",
            Vec::new(),
        ),
        finding("preempt-rt", Status::Good, "The kernel is PREEMPT_RT", Vec::new()),
        finding("thp", Status::Good, "Transparent huge pages are on request only", Vec::new()),
        finding("hypervisor", Status::NotApplicable, "Bare metal", Vec::new()),
    ]
}
