//! What does the scheduler take from real-time tasks by rule?
//!
//! Before 6.12 RT throttling: real-time tasks may use `sched_rt_runtime_us` of each period. From
//! 6.12 the fair server, a SCHED_DEADLINE server per CPU that runs ordinary tasks ahead of FIFO
//! ones: `sched_rt_runtime_us=-1` does not stop it (measured: 216 ms lost of 4 s with and without),
//! its own runtime of 0 does. With CONFIG_RT_GROUP_SCHED the old limit stays beside it.
//!
//! Both bite only a task that leaves less than the limit to others, so the default is doubtful:
//! only the user knows. It is bad where real-time tasks are left half of the time or less.

use rtproof_host::{CpuList, Facts, facts::sched::FairServer};

use crate::checks::draft::Draft;
use crate::checks::machine::{built_with, option, since, without_cpu_folder};
use crate::checks::{Check, text};
use crate::{Evidence, Finding, Intent, Remedy, Status, units};

pub(super) struct RtThrottling;

impl Check for RtThrottling {
    fn id(&self) -> &'static str {
        "rt-throttling"
    }

    fn title(&self) -> &'static str {
        "time taken from real-time tasks by RT throttling or the fair server"
    }

    fn why(&self) -> &'static str {
        "a real-time task that does not sleep enough is stopped for the rest of the period, or has \
         ordinary tasks run in front of it: 50 ms of each second by default"
    }

    fn source(&self) -> &'static str {
        "kernel/sched/rt.c, kernel/sched/deadline.c (fair server, 6.12); Documentation/scheduler/\
         sched-rt-group.rst; measured on 6.1, 6.12 and 7.2 with a FIFO and an ordinary spinner"
    }

    fn judge(&self, facts: &Facts, intent: &Intent) -> Finding {
        let draft = Draft::of(self, "no time taken").cpus(&intent.rt_cpus);
        if intent.rt_cpus.is_empty() {
            return draft.no_rt_cpus(facts);
        }
        let fair_server = &facts.sched.fair_server;
        if let Some(servers) = fair_server.value() {
            return judge_fair_server(draft, facts, intent, servers);
        }
        match since(facts, (6, 12)) {
            Some(false) => {
                let draft = draft.read(&facts.kernel.version, |(major, minor)| {
                    format!("{major}.{minor}: no fair server yet")
                });
                judge_throttling(draft, facts, "")
            }
            Some(true) => fair_server_unknown(draft, facts),
            None => draft.blind(&facts.kernel.version),
        }
    }
}

/// RT throttling is in force; `because` opens the summary where that needs a reason.
fn judge_throttling(draft: Draft, facts: &Facts, because: &str) -> Finding {
    let (runtime, period) = (&facts.sched.rt_runtime_us, &facts.sched.rt_period_us);
    let draft = draft.read(runtime, i64::to_string);
    let Some(&runtime_us) = runtime.value() else {
        return draft.blind(runtime);
    };
    if runtime_us < 0 {
        return draft.good(format!("{because}no limit on real-time tasks{}", group_caveat(facts)));
    }
    let draft = draft.read(period, i64::to_string);
    let Some(&period_us) = period.value() else {
        return draft.blind(period);
    };
    if runtime_us >= period_us {
        return draft.good(format!("{because}real-time tasks may use the whole period"));
    }
    let ns = |us: i64| u64::try_from(us).unwrap_or(0).saturating_mul(1_000);
    let (runtime_ns, period_ns) = (ns(runtime_us), ns(period_us));
    let summary = format!(
        "{because}real-time tasks are stopped for {} of each {} once they use {} of it",
        units::ns(period_ns - runtime_ns),
        units::ns(period_ns),
        units::ns(runtime_ns),
    );
    let remedies = [
        Remedy::Write { paths: vec![runtime.path.clone()], value: "-1".into() },
        Remedy::File {
            path: "/etc/sysctl.d/90-realtime.conf".into(),
            line: "kernel.sched_rt_runtime_us = -1".into(),
        },
    ];
    draft.remedies(remedies).status(taken(period_ns - runtime_ns, period_ns), summary)
}

fn judge_fair_server(
    draft: Draft,
    facts: &Facts,
    intent: &Intent,
    servers: &[FairServer],
) -> Finding {
    let fair_server = &facts.sched.fair_server;
    let draft = draft.read(fair_server, |servers| show(servers));
    let known = CpuList::new(servers.iter().map(|server| server.cpu));
    let missing = intent.rt_cpus.difference(&known);
    let on: Vec<&FairServer> = servers
        .iter()
        .filter(|server| intent.rt_cpus.contains(server.cpu) && server.runtime_ns > 0)
        .collect();
    let Some(worst) = on.iter().max_by_key(|server| server.runtime_ns) else {
        if !missing.is_empty() {
            return draft.unknown(format!("{}: no fair server listed", text::cpus(&missing)));
        }
        return judge_groups(draft, facts);
    };
    let cpus = CpuList::new(on.iter().map(|server| server.cpu));
    let mut summary = format!(
        "the fair server takes {} of each {} from real-time tasks on {} while an ordinary task \
         waits there",
        units::ns(worst.runtime_ns),
        units::ns(worst.period_ns),
        text::cpus(&cpus),
    );
    summary.push_str(&format!("; {}", limit_alone(facts)));
    let paths = cpus.iter().map(|cpu| format!("{}/cpu{cpu}/runtime", fair_server.path)).collect();
    draft
        .read(&facts.sched.rt_runtime_us, i64::to_string)
        .remedies([Remedy::Write { paths, value: "0".into() }])
        .status(taken(worst.runtime_ns, worst.period_ns), summary)
}

/// What the old limit is set to, which from 6.12 says nothing of the fair server.
fn limit_alone(facts: &Facts) -> String {
    match facts.sched.rt_runtime_us.value() {
        Some(-1) => "sched_rt_runtime_us=-1 alone does not stop it".into(),
        Some(us) => format!("sched_rt_runtime_us is {us}, and -1 alone does not stop it"),
        None => "sched_rt_runtime_us=-1 alone would not stop it".into(),
    }
}

/// The fair server is off: the old limit is left, where the kernel has it.
fn judge_groups(draft: Draft, facts: &Facts) -> Finding {
    let summary = "the fair server is off on the real-time CPUs";
    let runtime = &facts.sched.rt_runtime_us;
    let is_unlimited = runtime.value() == Some(&-1);
    match has_groups(facts) {
        Some(false) => {
            // Without groups this kernel does not throttle: the value decides nothing.
            let limit = runtime.value().map(|us| format!("; sched_rt_runtime_us is {us}"));
            let shown = limit.is_some().then(|| Evidence::of(runtime, i64::to_string));
            let limit = limit.unwrap_or_default();
            draft
                .saw([option(facts, "RT_GROUP_SCHED")])
                .saw(shown)
                .good(format!("{summary}{limit}"))
        }
        _ if is_unlimited => {
            draft.read(runtime, i64::to_string).good(format!("{summary}{}", group_caveat(facts)))
        }
        Some(true) => {
            let draft = draft.saw([option(facts, "RT_GROUP_SCHED")]);
            judge_throttling(draft, facts, "CONFIG_RT_GROUP_SCHED keeps RT throttling: ")
        }
        None => draft.saw([option(facts, "RT_GROUP_SCHED")]).unknown(format!(
            "{summary}, but with CONFIG_RT_GROUP_SCHED sched_rt_runtime_us throttles too, and the \
             kernel configuration is not readable"
        )),
    }
}

fn fair_server_unknown(draft: Draft, facts: &Facts) -> Finding {
    let fair_server = &facts.sched.fair_server;
    let why = fair_server.why_unknown().unwrap_or_default();
    let lockdown = facts.kernel.lockdown.value().map(String::as_str);
    let remedy = match lockdown {
        _ if without_cpu_folder(facts).is_some() => Remedy::Manual {
            text: "as root, mount both: mount -t sysfs sysfs /sys && mount -t debugfs debugfs \
                   /sys/kernel/debug"
                .into(),
        },
        Some("integrity" | "confidentiality") => Remedy::Manual {
            text: "kernel lockdown keeps debugfs closed: boot without Secure Boot or lockdown="
                .into(),
        },
        _ => Remedy::Manual {
            text: "as root, with debugfs mounted: mount -t debugfs debugfs /sys/kernel/debug"
                .into(),
        },
    };
    draft
        .read(fair_server, |servers| show(servers))
        .read(&facts.sched.rt_runtime_us, i64::to_string)
        .remedies([remedy])
        .unknown(format!(
            "fair server unknown, {}: {why}; {}",
            fair_server.path,
            limit_alone(facts)
        ))
}

/// Bad where it leaves real-time tasks half of the time or less.
fn taken(taken_ns: u64, period_ns: u64) -> Status {
    if taken_ns >= period_ns - taken_ns.min(period_ns) { Status::Bad } else { Status::Doubtful }
}

/// Whether real-time group scheduling is in force (`rt_group_sched=0` turns it off from 6.16).
fn has_groups(facts: &Facts) -> Option<bool> {
    if !built_with(facts, "RT_GROUP_SCHED")? {
        return Some(false);
    }
    let is_off = facts.kernel.cmdline.value()?.last("rt_group_sched") == Some(Some("0"));
    if is_off { since(facts, (6, 16)).map(|knows_it| !knows_it) } else { Some(true) }
}

fn group_caveat(facts: &Facts) -> &'static str {
    match has_groups(facts) {
        Some(true) => {
            "; CONFIG_RT_GROUP_SCHED: SCHED_FIFO is refused in control groups without rt_runtime"
        }
        _ => "",
    }
}

fn show(servers: &[FairServer]) -> String {
    let mut groups: Vec<((u64, u64), Vec<u32>)> = Vec::new();
    for server in servers {
        let key = (server.runtime_ns, server.period_ns);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, cpus)) => cpus.push(server.cpu),
            None => groups.push((key, vec![server.cpu])),
        }
    }
    let groups: Vec<String> = groups
        .iter()
        .map(|((runtime_ns, period_ns), cpus)| {
            let (runtime, period) = (units::ns(*runtime_ns), units::ns(*period_ns));
            format!("cpu {}: runtime {runtime} of {period}", text::list(cpus))
        })
        .collect();
    text::first_few(&groups, 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::checks::testing::{good, good_stock, intent, set_cmdline, set_config};
    use rtproof_host::Reading;

    fn judge(facts: &Facts) -> Finding {
        RtThrottling.judge(facts, &intent())
    }

    fn with_fair_server(runtime_ns: u64) -> Facts {
        let mut facts = good();
        let mut servers = facts.sched.fair_server.value().cloned().unwrap();
        servers[2].runtime_ns = runtime_ns;
        facts.sched.fair_server = Reading::known("/sys/kernel/debug/sched/fair_server", servers);
        facts
    }

    fn cites(finding: &Finding, path: &str) -> bool {
        finding.evidence.iter().any(|evidence| evidence.path == path)
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
    }

    #[test]
    fn from_6_12_only_the_fair_server_counts() {
        assert_eq!(judge(&good()).status, Good);
        let finding = judge(&with_runtime(good(), 950_000));
        assert_eq!(finding.status, Good);
        assert!(
            finding.summary.ends_with("off on the real-time CPUs; sched_rt_runtime_us is 950000")
        );
        let finding = judge(&with_runtime(with_fair_server(50_000_000), 950_000));
        assert!(
            finding.summary.ends_with("is 950000, and -1 alone does not stop it"),
            "{}",
            finding.summary
        );
        let finding = judge(&with_fair_server(50_000_000));
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("takes 50 ms of each 1 s"), "{}", finding.summary);
        assert!(finding.summary.ends_with("sched_rt_runtime_us=-1 alone does not stop it"));
        assert!(cites(&finding, "/proc/sys/kernel/sched_rt_runtime_us"), "{finding:?}");
        let path = "/sys/kernel/debug/sched/fair_server/cpu2/runtime".to_owned();
        assert_eq!(finding.remedies, [Remedy::Write { paths: vec![path], value: "0".into() }]);
        assert_eq!(judge(&with_fair_server(500_000_000)).status, Bad);
    }

    #[test]
    fn minus_one_alone_is_not_good_from_6_12() {
        let mut facts = good();
        let path = "/sys/kernel/debug/sched/fair_server";
        facts.sched.fair_server = Reading::absent(path);
        assert_eq!(judge(&facts).status, Unknown);
        facts.sched.fair_server = Reading::denied(path, "lockdown: integrity");
        let finding = judge(&facts);
        assert_eq!(finding.status, Unknown);
        assert!(finding.summary.contains("lockdown"), "{}", finding.summary);
        assert!(finding.summary.starts_with("fair server unknown"), "{}", finding.summary);
        assert!(finding.summary.contains("-1 alone does not stop it"), "{}", finding.summary);
        assert!(cites(&finding, "/proc/sys/kernel/sched_rt_runtime_us"), "{finding:?}");
        facts.kernel.version = Reading::absent("/proc/sys/kernel/osrelease");
        assert_eq!(judge(&facts).status, Unknown);
    }

    #[test]
    fn a_cpu_without_a_listed_server_is_unknown() {
        let mut facts = good();
        let servers = facts.sched.fair_server.value().cloned().unwrap();
        facts.sched.fair_server = Reading::known("/x", servers[..3].to_vec());
        assert_eq!(judge(&facts).status, Unknown);
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
        assert_eq!(judge(&facts).status, Good);
        facts.kernel.config = Reading::absent("/proc/config.gz");
        assert_eq!(judge(&facts).status, Unknown);
    }
}
