//! Was the FIFO spinner paused for an ordinary one, and by which rule?
//!
//! The observation decides whether; kernel version and settings decide by what. Before 6.12 only RT
//! throttling does it. From 6.12 the fair server does, and `sched_rt_runtime_us=-1` alone does not
//! stop it. Measured with this trial, 3 s on one emulated CPU, Debian RT kernels: 6.1.176 100 ms
//! taken, 0 with -1; 6.12.95 154 ms, 157 ms with -1, 0 with the fair server at 0, too; 7.2.12
//! 151 ms, 151 ms, 0.

use rtproof_host::{
    CpuList, Facts, Reading,
    facts::sched::{FairServer, wants_debugfs},
    knobs::cpu::{FAIR_SERVER, RT_RUNTIME},
};
use rtproof_model::trial::{GapCounts, Spin, ThrottlingObservation};

use super::is_locked_down;
use crate::check::{Check, Wanted};
use crate::draft::FindingBuilder;
use crate::machine::{built_with, option, since};
use crate::{Finding, Impact, Intent, Remedy, Status};

pub(super) static CHECK: Check = Check {
    id: "proof-throttling",
    wanted: Wanted::Text("a SCHED_FIFO thread is never paused for an ordinary one"),
    why: "a real-time task that does not sleep enough is stopped for the rest of the period, or \
          has ordinary tasks run in front of it",
    source: "measured here with a FIFO and an ordinary spinner; kernel/sched/rt.c, \
             kernel/sched/deadline.c (fair server, 6.12)",
    trade_off: Some(
        "without it a real-time task that never sleeps takes its CPU from all ordinary tasks, \
         threads of the kernel among them; a task that sleeps in time is never paused",
    ),
    impact: Impact::Milliseconds,
    ..Check::NEW
};

/// Period of both rules unless set.
const PERIOD_NS: u64 = 1_000_000_000;

/// Time for the ordinary spinner that is no pause: it may run before the other has its policy.
const NO_TIME_NS: u64 = 1_000_000;

pub(super) fn judge(observed: &ThrottlingObservation, facts: &Facts, intent: &Intent) -> Finding {
    let cpu = observed.cpu;
    let draft = CHECK.draft().cpus(&CpuList::new([cpu]));
    let run = match &observed.run {
        Ok(run) => run,
        Err(refusal) => {
            let draft = draft.measured(format!("FIFO spinner, CPU {cpu}"), refusal.text.clone());
            if !refusal.is_permission() {
                return draft.status(Status::Unknown, format!("not tried: {}", refusal.text));
            }
            let remedies = crate::remedies::right(facts, None, "rtprio", "95", "LimitRTPRIO=95");
            return draft.remedies(remedies).status(
                Status::Unknown,
                format!("not tried: {}; needs CAP_SYS_NICE or a limit rtprio", refusal.text),
            );
        }
    };
    let draft = evidence(draft, observed, run, facts);
    let is_paused = run.ordinary.count > 0;
    if is_paused {
        return paused(draft, run, facts, intent, cpu);
    }
    let spun = crate::ns(run.duration_ns);
    if run.duration_ns < 2 * period_ns(facts, cpu) {
        let period = crate::ns(period_ns(facts, cpu));
        let summary =
            format!("no pause in {spun}, which is too short to tell: periods are {period}");
        return draft.status(Status::Unknown, summary);
    }
    if run.ordinary_cpu_ns > NO_TIME_NS {
        let ordinary_ran = crate::ns(run.ordinary_cpu_ns);
        let summary = format!(
            "the ordinary spinner got {ordinary_ran} of {spun} beside the FIFO one, in pauses \
             below 1 ms"
        );
        return draft.status(Status::Doubtful, summary);
    }
    if run.beneath.count > 0 {
        let steal = match observed.steal_ms.value() {
            Some(0) | None => "no steal time was told: firmware (SMI), interrupts or a hypervisor \
                               that does not tell"
                .to_owned(),
            Some(ms) => format!("the hypervisor took {ms} ms of it (steal)"),
        };
        let summary = format!(
            "not paused by a rule, but CPU {cpu} itself was away, {}; {steal}",
            times(&run.beneath, run)
        );
        return draft.status(Status::Doubtful, summary);
    }
    if run.others.count > 0 {
        let summary = format!(
            "not paused for the ordinary spinner, but other tasks ran on CPU {cpu}, {}: real-time \
             ones, or ordinary ones by the same rule",
            times(&run.others, run)
        );
        return draft.status(Status::Doubtful, summary);
    }
    draft.status(
        Status::Good,
        format!("not paused in {spun} beside an ordinary spinner on CPU {cpu}"),
    )
}

fn times(gaps: &GapCounts, run: &Spin) -> String {
    let plural = if gaps.count == 1 { "" } else { "s" };
    format!(
        "{} time{plural} in {}, {} in all, {} at most",
        crate::grouped(gaps.count),
        crate::ns(run.duration_ns),
        crate::ns(gaps.sum_ns),
        crate::ns(gaps.max_ns)
    )
}

fn evidence(
    draft: FindingBuilder,
    observed: &ThrottlingObservation,
    run: &Spin,
    facts: &Facts,
) -> FindingBuilder {
    let cpu = observed.cpu;
    let gaps = |gaps: &GapCounts| match gaps.count {
        0 => "none".to_owned(),
        count => format!(
            "{count}, {} in all, {} at most",
            crate::ns(gaps.sum_ns),
            crate::ns(gaps.max_ns)
        ),
    };
    let (fifo, spun) = (crate::ns(run.fifo_cpu_ns), crate::ns(run.duration_ns));
    let server = |servers: &Vec<FairServer>| {
        let own = servers.iter().find(|server| server.cpu == cpu);
        own.map_or_else(
            || format!("none for CPU {cpu}"),
            |own| format!("{} of {}", crate::ns(own.runtime_ns), crate::ns(own.period_ns)),
        )
    };
    draft
        .measured(
            format!("FIFO spinner, CPU {cpu}"),
            format!("ran {fifo} of {spun}, times that it was switched out: {}", run.preemptions),
        )
        .measured(
            format!("ordinary spinner, CPU {cpu}"),
            format!("ran {}", crate::ns(run.ordinary_cpu_ns)),
        )
        .measured("gaps over 1 ms in which the ordinary spinner ran", gaps(&run.ordinary))
        .measured("gaps over 1 ms in which another task ran", gaps(&run.others))
        .measured("gaps over 1 ms without a switch of tasks", gaps(&run.beneath))
        .read(&observed.steal_ms, |ms| format!("steal {ms} ms on CPU {cpu} meanwhile"))
        .read(&facts.kernel.version, |(major, minor)| format!("{major}.{minor}"))
        .read(&facts.sched.rt_runtime_us, i64::to_string)
        .read(&facts.sched.fair_server, server)
}

/// The longer of the periods in force.
fn period_ns(facts: &Facts, cpu: u32) -> u64 {
    let limit = facts.sched.rt_period_us.value().and_then(|&us| u64::try_from(us).ok());
    let server = server_of(facts, cpu).map(|(_, period_ns)| period_ns);
    limit.map_or(PERIOD_NS, |us| us.saturating_mul(1_000)).max(server.unwrap_or(PERIOD_NS))
}

/// Runtime and period of the fair server of a CPU.
fn server_of(facts: &Facts, cpu: u32) -> Option<(u64, u64)> {
    let servers = facts.sched.fair_server.value()?;
    let own = servers.iter().find(|server| server.cpu == cpu)?;
    Some((own.runtime_ns, own.period_ns))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// sched_rt_runtime_us, of all or (CONFIG_RT_GROUP_SCHED) of groups.
    Throttling,
    /// The fair server, whose settings can be read.
    FairServer,
    /// The fair server by the kernel's version; its settings cannot be read.
    Hidden,
    /// One of them: the version is not known.
    Either,
    /// RT throttling and the fair server are off.
    Neither,
}

/// Whether sched_rt_runtime_us limits; `None` where it cannot be read. From 7.2 on it is the whole
/// period unless set.
fn is_limited(facts: &Facts) -> Option<bool> {
    let runtime_us = *facts.sched.rt_runtime_us.value()?;
    let period_us = facts.sched.rt_period_us.value().copied().unwrap_or(1_000_000);
    Some(runtime_us >= 0 && runtime_us < period_us)
}

fn rule(facts: &Facts, cpu: u32) -> Rule {
    let is_limited = is_limited(facts) != Some(false);
    match (since(facts, (6, 12)), server_of(facts, cpu)) {
        (_, Some((1.., _))) => Rule::FairServer,
        (Some(false), _) if is_limited => Rule::Throttling,
        (Some(false), _) => Rule::Neither,
        (_, Some((0, _))) if is_limited && built_with(facts, "RT_GROUP_SCHED") != Some(false) => {
            Rule::Throttling
        }
        (_, Some((0, _))) => Rule::Neither,
        (Some(true), None) => Rule::Hidden,
        (None, None) => Rule::Either,
    }
}

fn paused(draft: FindingBuilder, run: &Spin, facts: &Facts, intent: &Intent, cpu: u32) -> Finding {
    let rule = rule(facts, cpu);
    let by = match rule {
        Rule::Throttling => "RT throttling (sched_rt_runtime_us)".to_owned(),
        Rule::FairServer => "the fair server".to_owned(),
        Rule::Hidden => {
            let version = facts.kernel.version.value();
            let version = version.map_or(String::new(), |(a, b)| format!(" of Linux {a}.{b}"));
            format!("the fair server{version}, whose setting is not readable{}", hidden_by(facts))
        }
        Rule::Either => "RT throttling, or from Linux 6.12 the fair server".to_owned(),
        Rule::Neither => "a rule that is not known here: RT throttling and the fair server are \
                          off"
        .to_owned(),
    };
    let mut summary = format!("paused {}, by {by}", times(&run.ordinary, run));
    let taken_ns =
        u128::from(run.ordinary.sum_ns) * 1_000_000_000 / u128::from(run.duration_ns.max(1));
    let taken = crate::ns(u64::try_from(taken_ns).unwrap_or(u64::MAX));
    if matches!(rule, Rule::FairServer | Rule::Hidden | Rule::Either) {
        summary.push_str(match facts.sched.rt_runtime_us.value() {
            Some(-1) => "; sched_rt_runtime_us is -1, which alone does not stop it",
            _ => "; sched_rt_runtime_us=-1 alone would not stop it",
        });
    }
    draft
        .measured("taken of each second", format!("{taken}{}", expected(rule, facts, cpu)))
        .evidence(groups_matter(rule, facts).then(|| option(facts, "RT_GROUP_SCHED")))
        .remedies(remedies(rule, facts, intent, cpu))
        .status(Status::Bad, summary)
}

/// Time that the rule takes with the current settings.
fn expected(rule: Rule, facts: &Facts, cpu: u32) -> String {
    let runtime_us = facts.sched.rt_runtime_us.value().copied();
    let period_us = facts.sched.rt_period_us.value().copied();
    match (rule, server_of(facts, cpu), runtime_us, period_us) {
        (Rule::FairServer, Some((runtime_ns, period_ns)), ..) => {
            format!("; it is set to {} of each {}", crate::ns(runtime_ns), crate::ns(period_ns))
        }
        (Rule::Hidden, ..) => "; the kernel's default is 50 ms of each 1 s".into(),
        (Rule::Throttling, _, Some(runtime_us @ 0..), Some(period_us)) => {
            let ns = |us: i64| crate::ns(us.max(0).unsigned_abs().saturating_mul(1_000));
            format!("; it is set to {} of each {}", ns(period_us - runtime_us), ns(period_us))
        }
        _ => String::new(),
    }
}

fn hidden_by(facts: &Facts) -> String {
    if is_locked_down(facts) {
        return " (kernel lockdown keeps debugfs closed)".into();
    }
    let why = facts.sched.fair_server.why_unknown();
    why.map_or(String::new(), |why| format!(" ({why})"))
}

/// From 6.12 the old limit counts only beside group scheduling.
fn groups_matter(rule: Rule, facts: &Facts) -> bool {
    is_limited(facts) == Some(true) && rule != Rule::Neither && since(facts, (6, 12)) != Some(false)
}

fn remedies(rule: Rule, facts: &Facts, intent: &Intent, cpu: u32) -> Vec<Remedy> {
    let folder = "/sys/kernel/debug/sched/fair_server";
    let cpus = match intent.rt_cpus.contains(cpu) {
        true => intent.rt_cpus.clone(),
        false => CpuList::new([cpu]),
    };
    let paths: Vec<String> = cpus.iter().map(|cpu| format!("{folder}/cpu{cpu}/runtime")).collect();
    let off = Remedy::set(&FAIR_SERVER, paths, "0");
    let unlimited = [
        Remedy::set(&RT_RUNTIME, vec!["/proc/sys/kernel/sched_rt_runtime_us".into()], "-1"),
        Remedy::File {
            path: rtproof_host::knobs::SYSCTL_FILE.into(),
            line: "kernel.sched_rt_runtime_us = -1".into(),
        },
    ];
    let mut remedies = match rule {
        Rule::Throttling => return unlimited.into(),
        Rule::Neither => {
            let text = "look for ext_server in /sys/kernel/debug/sched and for cpu.rt_runtime_us \
                        of the control group";
            return vec![Remedy::Manual { text: text.into() }];
        }
        Rule::FairServer => vec![off],
        Rule::Hidden | Rule::Either if is_locked_down(facts) => {
            let text = "kernel lockdown keeps debugfs closed: boot without Secure Boot or \
                        lockdown=, or let the real-time task sleep 50 ms of each second";
            vec![Remedy::Manual { text: text.into() }]
        }
        Rule::Hidden | Rule::Either => vec![readable(&facts.sched.fair_server), off],
    };
    // Beside group scheduling RT throttling takes as much, once the fair server does not.
    let has_groups = built_with(facts, "RT_GROUP_SCHED") != Some(false);
    if groups_matter(rule, facts) && has_groups {
        remedies.extend(unlimited);
    }
    remedies
}

/// How the settings of the fair server become readable.
fn readable(server: &Reading<Vec<FairServer>>) -> Remedy {
    if wants_debugfs(server) {
        let command = "mount -t debugfs debugfs /sys/kernel/debug";
        return Remedy::Command { command: command.into() };
    }
    let text = match server.is_absent() {
        true => {
            "debugfs shows no fair server: use a kernel with CONFIG_SCHED_DEBUG, or let the \
             real-time task sleep 50 ms of each second"
        }
        false => "read /sys/kernel/debug/sched as root",
    };
    Remedy::Manual { text: text.into() }
}

#[cfg(test)]
mod tests {
    use rtproof_model::trial::Refusal;

    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{good, good_stock, intent, set_config};

    fn gaps(count: u64, sum_ms: u64, max_ms: u64) -> GapCounts {
        GapCounts { count, sum_ns: sum_ms * 1_000_000, max_ns: max_ms * 1_000_000 }
    }

    fn seen(run: Spin) -> ThrottlingObservation {
        let run = Spin {
            duration_ns: 3_000_000_000,
            fifo_cpu_ns: 2_850_000_000,
            ordinary_cpu_ns: run.ordinary.sum_ns,
            ..run
        };
        ThrottlingObservation { cpu: 3, run: Ok(run), steal_ms: Reading::known("/proc/stat", 0) }
    }

    fn paused() -> ThrottlingObservation {
        seen(Spin { ordinary: gaps(3, 160, 54), preemptions: 4, ..Spin::default() })
    }

    fn with(mut facts: Facts, version: (u32, u32), runtime_us: i64) -> Facts {
        facts.kernel.version = Reading::known("/proc/sys/kernel/osrelease", version);
        facts.sched.rt_runtime_us =
            Reading::known("/proc/sys/kernel/sched_rt_runtime_us", runtime_us);
        facts
    }

    fn server(mut facts: Facts, runtime_ns: u64) -> Facts {
        let own = FairServer { cpu: 3, runtime_ns, period_ns: PERIOD_NS };
        facts.sched.fair_server = Reading::known("/sys/kernel/debug/sched/fair_server", vec![own]);
        facts
    }

    fn hidden(mut facts: Facts, why: &str) -> Facts {
        facts.sched.fair_server = Reading::denied("/sys/kernel/debug/sched/fair_server", why);
        facts
    }

    #[test]
    fn no_pause_is_good() {
        let finding = judge(&seen(Spin::default()), &good(), &intent());
        assert_eq!(finding.status, Good, "{finding:#?}");
        assert_eq!(finding.summary, "not paused in 3 s beside an ordinary spinner on CPU 3");
        assert!(finding.remedies.is_empty() && finding.evidence.len() >= 8);
    }

    #[test]
    fn a_short_run_without_a_pause_proves_nothing() {
        let mut short = seen(Spin::default());
        short.run.as_mut().unwrap().duration_ns = 1_500_000_000;
        let finding = judge(&short, &good(), &intent());
        assert_eq!(finding.status, Unknown);
        assert!(finding.summary.contains("too short"), "{}", finding.summary);
    }

    #[test]
    fn before_6_12_it_is_rt_throttling() {
        let facts = with(good_stock(), (6, 1), 950_000);
        let finding = judge(&paused(), &facts, &intent());
        assert_eq!(finding.status, Bad);
        assert_eq!(
            finding.summary,
            "paused 3 times in 3 s, 160 ms in all, 54 ms at most, by RT throttling \
             (sched_rt_runtime_us)"
        );
        assert!(finding.remedies[0].to_string().starts_with("echo -1 >"), "{finding:#?}");
        let taken = finding.evidence.iter().find(|e| e.path == "taken of each second").unwrap();
        assert_eq!(taken.value, "53.3 ms; it is set to 50 ms of each 1 s");
        let finding = judge(&paused(), &with(good_stock(), (6, 1), -1), &intent());
        assert!(finding.summary.contains("not known here"), "{}", finding.summary);
    }

    #[test]
    fn from_6_12_it_is_the_fair_server_whatever_the_limit() {
        for runtime_us in [-1, 950_000] {
            let facts = server(with(good(), (6, 18), runtime_us), 50_000_000);
            let finding = judge(&paused(), &facts, &intent());
            assert_eq!(finding.status, Bad);
            assert!(finding.summary.contains("by the fair server; "), "{}", finding.summary);
            assert!(finding.summary.contains("-1"), "{}", finding.summary);
            let Remedy::Set { at: paths, value, .. } = &finding.remedies[0] else { panic!() };
            assert_eq!(value, "0");
            assert!(paths.iter().any(|path| path.ends_with("cpu3/runtime")), "{paths:?}");
        }
    }

    #[test]
    fn a_hidden_fair_server_is_named_with_the_next_step() {
        let facts = hidden(with(good(), (6, 18), -1), "debugfs is not mounted");
        let finding = judge(&paused(), &facts, &intent());
        assert!(finding.summary.contains("of Linux 6.18, whose setting is not readable"));
        assert!(finding.remedies[0].to_string().starts_with("mount -t debugfs"));
        // Mounted, and closed to this user or without the setting: a mount changes nothing.
        let closed = hidden(with(good(), (6, 18), -1), "permission denied");
        let mut none = with(good(), (6, 18), -1);
        none.sched.fair_server = Reading::absent("/sys/kernel/debug/sched/fair_server");
        for (facts, wanted) in [(closed, "as root"), (none, "CONFIG_SCHED_DEBUG")] {
            let remedies = judge(&paused(), &facts, &intent()).remedies;
            assert!(remedies[0].to_string().contains(wanted), "{remedies:?}");
            assert!(remedies.iter().all(|remedy| !remedy.to_string().contains("mount")));
        }
        let mut facts = hidden(with(good(), (6, 18), -1), "lockdown: integrity");
        facts.kernel.lockdown = Reading::known("/sys/kernel/security/lockdown", "integrity".into());
        let finding = judge(&paused(), &facts, &intent());
        assert!(finding.summary.contains("(kernel lockdown keeps debugfs closed)"));
        assert!(finding.remedies.iter().all(|r| matches!(r, Remedy::Manual { .. })));
        facts.kernel.version = Reading::absent("/proc/sys/kernel/osrelease");
        let finding = judge(&paused(), &facts, &intent());
        assert!(finding.summary.contains("or from Linux 6.12"), "{}", finding.summary);
    }

    #[test]
    fn groups_keep_the_old_limit() {
        let mut facts = server(with(good(), (6, 18), 950_000), 0);
        set_config(&mut facts, "RT_GROUP_SCHED", Some("y"));
        let finding = judge(&paused(), &facts, &intent());
        assert!(finding.summary.contains("by RT throttling"), "{}", finding.summary);
        let facts = server(facts, 50_000_000);
        let finding = judge(&paused(), &facts, &intent());
        assert_eq!(finding.remedies.len(), 3, "{finding:#?}");
        // The whole period is no limit: the default of 7.2.
        let finding = judge(&paused(), &with(facts, (7, 2), 1_000_000), &intent());
        assert_eq!(finding.remedies.len(), 1, "{finding:#?}");
        let mut facts = server(with(good(), (6, 18), 950_000), 0);
        set_config(&mut facts, "RT_GROUP_SCHED", None);
        let finding = judge(&paused(), &facts, &intent());
        assert!(finding.summary.contains("not known here"), "{}", finding.summary);
    }

    #[test]
    fn a_hypervisor_and_other_tasks_are_not_a_rule() {
        let mut stolen = seen(Spin { beneath: gaps(2, 30, 20), ..Spin::default() });
        stolen.steal_ms = Reading::known("/proc/stat", 30);
        let finding = judge(&stolen, &good(), &intent());
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("the hypervisor took 30 ms"), "{}", finding.summary);
        stolen.steal_ms = Reading::known("/proc/stat", 0);
        let finding = judge(&stolen, &good(), &intent());
        assert!(finding.summary.contains("SMI"), "{}", finding.summary);
        let others = seen(Spin { others: gaps(1, 3, 3), ..Spin::default() });
        let finding = judge(&others, &good(), &intent());
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("CPU 3, 1 time in 3 s"), "{}", finding.summary);
        let mut crumbs = seen(Spin::default());
        crumbs.run.as_mut().unwrap().ordinary_cpu_ns = 40_000_000;
        assert_eq!(judge(&crumbs, &good(), &intent()).status, Doubtful);
    }

    #[test]
    fn without_the_right_it_is_unknown() {
        let refusal = Refusal { errno: Some(1), text: "SCHED_FIFO 1: not permitted".into() };
        let steal_ms = Reading::known("/proc/stat", 0);
        let observed = ThrottlingObservation { cpu: 3, run: Err(refusal), steal_ms };
        let finding = judge(&observed, &good(), &intent());
        assert_eq!(finding.status, Unknown);
        assert!(finding.summary.contains("needs CAP_SYS_NICE"), "{}", finding.summary);
        assert!(!finding.evidence.is_empty() && !finding.remedies.is_empty());
    }
}
