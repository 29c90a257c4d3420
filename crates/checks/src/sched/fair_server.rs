//! Does the kernel run ordinary tasks in front of real-time ones?
//!
//! From 6.12 each CPU has the fair server, a SCHED_DEADLINE server that runs ordinary tasks ahead
//! of FIFO ones once they wait: `sched_rt_runtime_us=-1` does not stop it (measured: 216 ms lost
//! of 4 s with and without), its own runtime of 0 does.
//!
//! It takes time only where an ordinary task waits on the same CPU, so the default is doubtful.

use rtproof_host::Facts;
use rtproof_host::knobs::sched::FAIR_SERVER;

use super::servers;
use crate::check::{Check, Judge};
use crate::draft::Draft;
use crate::machine::since;
use crate::profile::Choice;
use crate::{Finding, Impact, Intent};

pub(super) static CHECK: Check = Check {
    id: "fair-server",
    title: "time taken from real-time tasks by the fair server",
    why: "while an ordinary task waits, the fair server runs it in front of the real-time task: 50 \
          ms of each second by default",
    source: "kernel/sched/deadline.c, kernel/sched/fair.c (fair server, 6.12); measured on 6.12, \
             6.18 and 7.2 with a FIFO and an ordinary spinner",
    trade_off: Some(
        "without it ordinary tasks on a CPU whose real-time task never sleeps starve, threads of \
         the kernel among them",
    ),
    impact: Impact::Milliseconds,
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let wanted = match intent.profile.choices.rt_throttling {
        Choice::On => "on, below half of the time",
        Choice::Off | Choice::Either => "no time taken",
    };
    let draft = draft.wants(wanted).cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let reading = &facts.sched.fair_server;
    if let Some(found) = reading.value() {
        let is_on = |server: &rtproof_host::facts::sched::FairServer| {
            server.runtime_ns > 0 && intent.rt_cpus.contains(server.cpu)
        };
        // The old limit decides nothing here: it is shown where a reader may think it does.
        let draft = match found.iter().any(is_on) {
            true => draft.read(&facts.sched.rt_runtime_us, i64::to_string),
            false => draft,
        };
        let remark = format!("; {}", limit_alone(facts));
        let names = ("fair server", "an ordinary task");
        return servers::judge(draft, &FAIR_SERVER, reading, found, intent, names, &remark);
    }
    match since(facts, (6, 12)) {
        Some(false) => draft
            .read(&facts.kernel.version, |(major, minor)| format!("{major}.{minor}"))
            .not_applicable("kernels before 6.12 have no fair server"),
        Some(true) => {
            let why = reading.why_unknown().unwrap_or_default();
            draft
                .read(reading, |found| servers::show(found))
                .read(&facts.sched.rt_runtime_us, i64::to_string)
                .remedies([servers::readable(facts, reading)])
                .unknown(format!(
                    "fair server unknown, {}: {why}; {}",
                    reading.path,
                    limit_alone(facts)
                ))
        }
        None => draft.blind(&facts.kernel.version),
    }
}

/// What the old limit is set to, which from 6.12 says nothing of the fair server.
fn limit_alone(facts: &Facts) -> String {
    match facts.sched.rt_runtime_us.value() {
        Some(-1) => "sched_rt_runtime_us=-1 alone does not stop it".into(),
        Some(us) => format!("sched_rt_runtime_us is {us}, and -1 alone does not stop it"),
        None => "sched_rt_runtime_us=-1 alone would not stop it".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Remedy;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, good_stock, intent};
    use rtproof_host::Reading;

    fn judge(facts: &Facts) -> Finding {
        CHECK.judge(facts, &intent())
    }

    fn with_server(runtime_ns: u64) -> Facts {
        let mut facts = good();
        let mut servers = facts.sched.fair_server.value().cloned().unwrap();
        servers[2].runtime_ns = runtime_ns;
        facts.sched.fair_server = Reading::known("/sys/kernel/debug/sched/fair_server", servers);
        facts
    }

    fn cites(finding: &Finding, path: &str) -> bool {
        finding.evidence.iter().any(|evidence| evidence.path == path)
    }

    #[test]
    fn off_on_the_real_time_cpus_is_good() {
        let finding = judge(&good());
        assert_eq!(finding.status, Good);
        assert_eq!(finding.summary, "the fair server is off on CPUs 2-3");
        assert_eq!(judge(&good_stock()).status, NotApplicable);
    }

    #[test]
    fn a_profile_may_want_the_limit() {
        let profile = crate::Profile::of(crate::profile::Kind::Audio);
        let audio = Intent { profile, ..intent() };
        let judge = |facts: &Facts| CHECK.judge(facts, &audio).status;
        assert_eq!(judge(&with_server(50_000_000)), Good);
        assert_eq!(judge(&with_server(500_000_000)), Bad);
        assert_eq!(judge(&good()), Doubtful);
    }

    #[test]
    fn the_old_limit_does_not_stop_it() {
        let mut facts = with_server(50_000_000);
        let finding = judge(&facts);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("takes 50 ms of each 1 s"), "{}", finding.summary);
        assert!(finding.summary.ends_with("sched_rt_runtime_us=-1 alone does not stop it"));
        assert!(cites(&finding, "/proc/sys/kernel/sched_rt_runtime_us"), "{finding:?}");
        let path = "/sys/kernel/debug/sched/fair_server/cpu2/runtime".to_owned();
        assert_eq!(finding.remedies, [Remedy::set(&FAIR_SERVER, vec![path], "0")]);
        let path = "/proc/sys/kernel/sched_rt_runtime_us";
        facts.sched.rt_runtime_us = Reading::known(path, 950_000);
        let finding = judge(&facts);
        assert!(
            finding.summary.ends_with("is 950000, and -1 alone does not stop it"),
            "{}",
            finding.summary
        );
        assert_eq!(judge(&with_server(500_000_000)).status, Bad);
    }

    #[test]
    fn a_server_that_cannot_be_seen_is_unknown() {
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
}
