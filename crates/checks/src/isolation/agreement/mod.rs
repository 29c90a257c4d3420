//! Do the parts of CPU isolation agree, with each other, with what is in force, and with the
//! real-time CPUs?
//!
//! Isolation is four boot parameters that nobody compares: isolcpus with its flags, nohz_full,
//! rcu_nocbs and irqaffinity. A typing error, a missing flag or a list copied from another machine
//! is ignored without a word. Each contradiction is one line here that names both sides; what the
//! kernel did with the parameters is read from /sys, never assumed.

use rtproof_host::{Facts, facts::kernel::CommandLine};

use crate::check::{Check, Judge, Needs};
use crate::draft::Draft;
use crate::text;
use crate::{Evidence, Finding, Impact, Intent, Remedy, Status, When};
use scene::{Fault, KEYS, Scene};

mod scene;

/// Most contradictions in the summary.
const SHOWN_MAX: usize = 3;

pub(super) static CHECK: Check = Check {
    id: "isolation",
    title: "isolated CPUs: boot parameters, what is in force, and the real-time CPUs",
    why: "what is not isolated in fact shares its CPU with load balancing, timer ticks, RCU \
          callbacks and device interrupts",
    source: "Documentation/admin-guide/cpu-isolation.rst, kernel-parameters.txt; \
             kernel/sched/isolation.c, kernel/rcu/tree_nocb.h, lib/bitmap-str.c",
    impact: Impact::Hundreds,
    when: When::Boot,
    needs: Needs::OfflineCpus,
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let wanted = format!("{} isolated, and all parts agree", text::cpus(&intent.rt_cpus));
    let draft = draft.wants(wanted).cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let (isolated, cmdline) = (&facts.cpus.isolated, &facts.kernel.cmdline);
    let scene = Scene::of(facts, intent);
    let draft = draft.read(cmdline, shown).read(isolated, text::or_empty).saw(scene.evidence());
    let faults = scene.faults();
    let is_bad = faults.first().is_some_and(|worst| worst.status == Status::Bad);
    match scene.blind() {
        Some(why) if !is_bad => {
            let also = faults.iter().map(|fault| fault.text.clone());
            let all: Vec<String> = [why].into_iter().chain(also).collect();
            draft.unknown(all.join("; "))
        }
        _ if faults.is_empty() => draft.good(scene.summary()),
        _ => {
            // All of them are evidence: the summary names the first few.
            let path = format!("{}, {}", cmdline.path, isolated.path);
            let rest = faults.iter().skip(SHOWN_MAX);
            let rest = rest.map(|fault| Evidence { path: path.clone(), value: fault.text.clone() });
            judge_faults(draft.saw(rest), &faults, intent)
        }
    }
}

fn judge_faults(draft: Draft, faults: &[Fault], intent: &Intent) -> Finding {
    let texts: Vec<&str> = faults.iter().map(|fault| fault.text.as_str()).collect();
    let mut summary = texts[..texts.len().min(SHOWN_MAX)].join("; ");
    if texts.len() > SHOWN_MAX {
        summary.push_str(&format!("; {} more", texts.len() - SHOWN_MAX));
    }
    let mut remedies: Vec<Remedy> = Vec::new();
    for remedy in faults.iter().filter_map(|fault| fault.remedy.clone()) {
        if !remedies.contains(&remedy) {
            remedies.push(remedy);
        }
    }
    if remedies.is_empty() && !intent.housekeeping.is_empty() {
        let text = "choose real-time CPUs that leave CPU 0 and one more for housekeeping".into();
        remedies.push(Remedy::Manual { text });
    }
    let status = faults.first().map_or(Status::Unknown, |fault| fault.status);
    draft.remedies(remedies).status(status, summary)
}

/// The parameters in question, as written.
fn shown(line: &CommandLine) -> String {
    let words: Vec<String> = KEYS
        .iter()
        .flat_map(|key| line.all(key).map(move |value| (key, value)))
        .map(|(key, value)| value.map_or((*key).into(), |value| format!("{key}={value}")))
        .collect();
    if words.is_empty() { format!("no {}", KEYS.join(", ")) } else { words.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{cpus, good, intent, set_cmdline, set_config};
    use rtproof_host::Reading;
    use rtproof_host::knobs::power::ONLINE;

    /// The good machine with this command line and these CPUs isolated and tickless in force.
    fn with(line: &str, isolated: &[u32], nohz_full: &[u32]) -> Facts {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        let set = |path: &str, set: &[u32]| {
            Reading::known(format!("/sys/devices/system/cpu/{path}"), cpus(set))
        };
        facts.cpus.isolated = set("isolated", isolated);
        facts.cpus.nohz_full = set("nohz_full", nohz_full);
        facts
    }

    fn judge(line: &str, isolated: &[u32], nohz_full: &[u32]) -> Finding {
        CHECK.judge(&with(line, isolated, nohz_full), &intent())
    }

    /// Status, and whether the summary names both sides.
    fn check(finding: &Finding, status: Status, sides: &[&str]) {
        assert_eq!(finding.status, status, "{}", finding.summary);
        for side in sides {
            assert!(finding.summary.contains(side), "{side}: {}", finding.summary);
        }
    }

    #[test]
    fn agreement_is_good() {
        let finding = CHECK.judge(&good(), &intent());
        check(&finding, Good, &["isolated 2-3, nohz_full 2-3, rcu_nocbs 2-3, irqaffinity 0-1"]);
        check(&judge("isolcpus=2-3 rcu_nocbs=2-3", &[2, 3], &[]), Good, &[]);
        check(&judge("isolcpus=2-N nohz_full=2-N", &[2, 3], &[2, 3]), Good, &[]);
    }

    #[test]
    fn no_isolation_at_all_is_doubtful() {
        let finding = judge("quiet", &[], &[]);
        check(&finding, Doubtful, &["CPUs 2-3 shared with ordinary tasks"]);
        let parameter = "isolcpus=managed_irq,domain,2-3".into();
        assert_eq!(finding.remedies, [Remedy::Boot { parameter }]);
        let all = Intent { rt_cpus: cpus(&[0, 1, 2, 3]), housekeeping: cpus(&[]), ..intent() };
        let finding = CHECK.judge(&with("quiet", &[], &[]), &all);
        check(&finding, Doubtful, &["none is left to move work to"]);
    }

    #[test]
    fn other_cpus_isolated_than_the_real_time_ones() {
        check(&judge("isolcpus=1", &[1], &[]), Bad, &["CPU 1 isolated", "real-time CPUs 2-3 not"]);
        check(&judge("isolcpus=3 rcu_nocbs=3", &[3], &[]), Bad, &["CPU 3", "real-time CPU 2 not"]);
    }

    #[test]
    fn managed_irq_without_domain_isolates_nothing() {
        let finding = judge("isolcpus=managed_irq,2-3", &[], &[]);
        check(
            &finding,
            Bad,
            &["isolcpus=managed_irq,2-3", "isolated is empty", "no `domain` flag"],
        );
    }

    #[test]
    fn a_list_that_the_kernel_refuses() {
        let finding = judge("isolcpus=2-3n rcu_nocbs=2-3n", &[], &[]);
        check(&finding, Bad, &["isolcpus=2-3n is refused, the kernel ignores it"]);
        let finding = judge("isolcpus=2-3 rcu_nocbs=2-3n", &[2, 3], &[]);
        check(&finding, Doubtful, &["rcu_nocbs=2-3n is refused, the kernel offloads every CPU"]);
        let finding = judge("isolcpus=2-3 rcu_nocbs=2-3 irqaffinity=1-0", &[2, 3], &[]);
        check(&finding, Bad, &["irqaffinity=1-0", "runs backwards"]);
    }

    #[test]
    fn n_on_an_old_kernel_and_cpus_that_are_not_there() {
        let mut facts = with("isolcpus=2-N", &[], &[]);
        facts.kernel.version = Reading::known("/proc/sys/kernel/osrelease", (5, 10));
        check(&CHECK.judge(&facts, &intent()), Bad, &["isolcpus=2-N", "5.13"]);
        let finding = judge("isolcpus=2-7", &[], &[]);
        check(&finding, Bad, &["isolcpus=2-7", "this machine has 0-3, no 4-7"]);
    }

    #[test]
    fn a_flag_that_is_misspelt_is_skipped() {
        let finding = judge("isolcpus=manged_irq,2-3 rcu_nocbs=2-3", &[2, 3], &[]);
        check(&finding, Doubtful, &["isolcpus=manged_irq,2-3", "skips the flag manged_irq"]);
    }

    #[test]
    fn a_kernel_built_without_the_feature() {
        let mut facts = with("isolcpus=2-3 nohz_full=2-3 rcu_nocbs=2-3", &[], &[]);
        facts.cpus.nohz_full = Reading::absent("/sys/devices/system/cpu/nohz_full");
        for option in ["CPU_ISOLATION", "NO_HZ_FULL", "RCU_NOCB_CPU"] {
            set_config(&mut facts, option, None);
        }
        let sides = ["CONFIG_CPU_ISOLATION", "CONFIG_NO_HZ_FULL", "CONFIG_RCU_NOCB_CPU"];
        check(&CHECK.judge(&facts, &intent()), Bad, &sides[..2]);
    }

    #[test]
    fn nohz_full_and_rcu_nocbs_that_do_not_match() {
        let finding = judge("isolcpus=2-3 nohz_full=1-3", &[2, 3], &[1, 2, 3]);
        check(&finding, Doubtful, &["CPU 1 tickless but not isolated", "nohz_full 1-3"]);
        let finding = judge("isolcpus=2-3 nohz_full=3 rcu_nocbs=2", &[2, 3], &[3]);
        check(&finding, Doubtful, &["CPU 2 isolated but not tickless"]);
        let finding = judge("isolcpus=2-3 rcu_nocbs=2", &[2, 3], &[]);
        check(&finding, Doubtful, &["CPU 3 isolated but keeps its RCU callbacks (rcu_nocbs=2)"]);
        let finding = judge("isolcpus=2-3 nohz_full=2-3 rcu_nocbs=2-3", &[2, 3], &[]);
        check(&finding, Bad, &["nohz_full=2-3, but", "nohz_full is empty"]);
    }

    #[test]
    fn a_kernel_that_offloads_by_default_needs_no_rcu_nocbs() {
        let mut facts = with("isolcpus=2-3", &[2, 3], &[]);
        assert_eq!(CHECK.judge(&facts, &intent()).status, Doubtful);
        set_config(&mut facts, "RCU_NOCB_CPU_DEFAULT_ALL", Some("y"));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
    }

    #[test]
    fn irqaffinity_over_isolated_cpus() {
        let finding = judge("isolcpus=2-3 rcu_nocbs=2-3 irqaffinity=0-3", &[2, 3], &[]);
        check(&finding, Bad, &["irqaffinity=0-3 sends interrupts to isolated CPUs 2-3"]);
    }

    #[test]
    fn a_key_with_two_values() {
        let finding = judge("isolcpus=2-3 rcu_nocbs=2-3 isolcpus=1-3", &[2, 3], &[]);
        check(&finding, Doubtful, &["isolcpus=2-3 and isolcpus=1-3 on one command line"]);
    }

    #[test]
    fn all_cpus_or_cpu_0_isolated() {
        let line = "isolcpus=0-3 rcu_nocbs=0-3";
        check(&judge(line, &[0, 1, 2, 3], &[]), Bad, &["none is left for housekeeping"]);
        let line = "isolcpus=0,2-3 rcu_nocbs=0-3";
        check(&judge(line, &[0, 2, 3], &[]), Doubtful, &["CPU 0 is isolated"]);
    }

    #[test]
    fn what_is_unknown_is_said_unless_something_is_bad_anyway() {
        let mut facts = good();
        facts.kernel.cmdline = Reading::denied("/proc/cmdline", "EACCES");
        check(&CHECK.judge(&facts, &intent()), Unknown, &["/proc/cmdline: refused"]);
        facts.cpus.isolated = Reading::known("/sys/devices/system/cpu/isolated", cpus(&[1]));
        check(&CHECK.judge(&facts, &intent()), Bad, &["CPU 1 isolated"]);
        let mut facts = with("isolcpus=2-3 irqaffinity=0-3", &[], &[]);
        facts.cpus.isolated = Reading::absent("/sys/devices/system/cpu/isolated");
        check(&CHECK.judge(&facts, &intent()), Bad, &["isolated CPUs 2-3"]);
    }

    #[test]
    fn many_contradictions_are_counted() {
        let line = "isolcpus=0-1,x nohz_full=9-8 irqaffinity=y rcu_nocbs=z";
        let finding = judge(line, &[1], &[]);
        check(&finding, Bad, &["; 2 more"]);
        let shown = finding
            .evidence
            .iter()
            .filter(|evidence| evidence.path == "/proc/cmdline, /sys/devices/system/cpu/isolated");
        assert_eq!(shown.count(), 2, "{:?}", finding.evidence);
    }

    #[test]
    fn an_isolated_cpu_that_is_offline_is_said_to_be() {
        let mut facts = good();
        facts.cpus.online = Reading::known(facts.cpus.online.path.clone(), cpus(&[0, 1, 2]));
        facts.cpus.cpus.pop();
        let finding = CHECK.judge(&facts, &intent());
        check(&finding, Doubtful, &["real-time CPU 3 offline (SMT is off)"]);
        facts.cpus.smt_control = Reading::known(facts.cpus.smt_control.path.clone(), "on".into());
        let finding = CHECK.judge(&facts, &intent());
        check(&finding, Doubtful, &["real-time CPU 3 offline: nothing is known of it"]);
        let paths = vec!["/sys/devices/system/cpu/cpu3/online".into()];
        assert_eq!(finding.remedies, [Remedy::set(&ONLINE, paths, "1")]);
    }
}
