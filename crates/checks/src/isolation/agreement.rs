//! Do the parts of CPU isolation agree, with each other, with what is in force, and with the
//! real-time CPUs?
//!
//! Isolation is four boot parameters that nobody compares: isolcpus with its flags, nohz_full,
//! rcu_nocbs and irqaffinity. A typing error, a missing flag or a list copied from another machine
//! is ignored without a word. Each contradiction is one line here that names both sides; what the
//! kernel did with the parameters is read from /sys, never assumed.

use rtproof_host::{CpuList, Facts, Reading, facts::kernel::CommandLine, knobs::power::ONLINE};

use crate::check::{Check, Judge, Needs};
use crate::draft::FindingBuilder;
use crate::machine::{CmdlineValue, CpuParameter, List, built_with, is_all_rt, offline_rt, option};
use crate::{
    Evidence, Finding, Impact, Intent, Proposal, Remedy, Status, When, choice, known, machine,
};

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

fn judge(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let wanted = format!("{} isolated, and all parts agree", machine::cpus(&intent.rt_cpus));
    let draft = draft.wanted(wanted).cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let (isolated, cmdline) = (&facts.cpus.isolated, &facts.kernel.cmdline);
    let scene = Scene::of(facts, intent);
    let draft =
        draft.read(cmdline, shown).read(isolated, machine::or_empty).evidence(scene.evidence());
    let faults = scene.faults();
    let is_bad = faults.first().is_some_and(|worst| worst.status == Status::Bad);
    match scene.incomparable() {
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
            judge_faults(draft.evidence(rest), &faults, intent)
        }
    }
}

fn judge_faults(draft: FindingBuilder, faults: &[Fault], intent: &Intent) -> Finding {
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

// The comparisons: each finds what contradicts what, and names both sides.

const KEYS: [&str; 4] = ["isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity"];

/// Flags that isolcpus knows; the kernel skips others.
const FLAGS: [&str; 3] = ["nohz", "domain", "managed_irq"];

struct Fault {
    pub status: Status,
    pub text: String,
    pub remedy: Option<Remedy>,
}

fn bad(text: String, remedy: Option<Remedy>) -> Option<Fault> {
    Some(Fault { status: Status::Bad, text, remedy })
}

fn doubtful(text: String, remedy: Option<Remedy>) -> Option<Fault> {
    Some(Fault { status: Status::Doubtful, text, remedy })
}

/// Everything compared, read once.
struct Scene<'a> {
    facts: &'a Facts,
    intent: &'a Intent,
    /// `None`: the command line is unknown.
    given: Option<[CmdlineValue; 4]>,
    /// CPUs isolated in force; `None`: unknown.
    isolated: Option<&'a CpuList>,
    /// CPUs in full-tickless mode; `None`: unknown, or this kernel has no such mode.
    nohz_full: Option<&'a CpuList>,
}

impl<'a> Scene<'a> {
    fn of(facts: &'a Facts, intent: &'a Intent) -> Self {
        let line = facts.kernel.cmdline.value();
        Self {
            facts,
            intent,
            given: line.map(|line| KEYS.map(|key| CmdlineValue::of(facts, line, key))),
            isolated: facts.cpus.isolated.value(),
            nohz_full: facts.cpus.nohz_full.value(),
        }
    }

    /// Every contradiction, the worst first.
    fn faults(&self) -> Vec<Fault> {
        let mut faults = self.lists();
        faults.extend(self.skipped_flag());
        faults.extend(self.isolcpus_in_force());
        faults.extend(self.nohz_full_in_force());
        faults.extend(self.real_time_cpus());
        faults.extend(self.shape());
        faults.extend(self.offline());
        faults.extend(self.ticks());
        faults.extend(self.callbacks());
        faults.extend(self.interrupts());
        faults.sort_by_key(|fault| fault.status);
        faults
    }

    fn given(&self, key: &str) -> &CmdlineValue {
        let index = KEYS.iter().position(|known| *known == key);
        match (&self.given, index) {
            (Some(given), Some(index)) => &given[index],
            _ => &CmdlineValue::Not,
        }
    }

    /// The parameter that is to be there, with the real-time CPUs.
    fn wanted(&self, key: &str) -> Option<Remedy> {
        let cpus = match key {
            "irqaffinity" => &self.intent.housekeeping,
            _ => &self.intent.rt_cpus,
        };
        let parameter = match key {
            "isolcpus" => known::isolcpus(self.facts, cpus),
            _ => format!("{key}={cpus}"),
        };
        (!cpus.is_empty()).then_some(Remedy::Boot { parameter })
    }

    /// Lists that the kernel refuses, and keys given twice.
    fn lists(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        for key in KEYS {
            match self.given(key) {
                CmdlineValue::Conflicting(written) => faults.extend(doubtful(
                    format!("{} on one command line", written.join(" and ")),
                    self.wanted(key),
                )),
                CmdlineValue::Once(CpuParameter { written, list: List::Refused(why), .. }) => {
                    // rcu_nocb_setup() offloads every CPU when it cannot read the list.
                    let (status, effect) = match key {
                        "rcu_nocbs" => (Status::Doubtful, "offloads every CPU"),
                        "irqaffinity" => (Status::Bad, "does not take it"),
                        _ => (Status::Bad, "ignores it"),
                    };
                    let text = format!("{written} is refused, the kernel {effect}: {why}");
                    faults.push(Fault { status, text, remedy: self.wanted(key) });
                }
                _ => {}
            }
        }
        faults
    }

    /// A flag of isolcpus that no kernel knows.
    fn skipped_flag(&self) -> Option<Fault> {
        let asked = self.given("isolcpus").once()?;
        asked.cpus()?;
        let flag = asked.flags.iter().find(|flag| !FLAGS.contains(&flag.as_str()))?;
        let text = format!("{}: the kernel skips the flag {flag}", asked.written);
        doubtful(text, self.wanted("isolcpus"))
    }

    /// isolcpus was asked for: is it so?
    fn isolcpus_in_force(&self) -> Option<Fault> {
        let asked = self.given("isolcpus").once()?;
        let cpus = asked.cpus()?;
        let Some(isolated) = self.isolated else {
            let text = format!("{} has no `domain` flag", asked.written);
            return if asked.is_domain() { None } else { doubtful(text, self.wanted("isolcpus")) };
        };
        let missing = cpus.difference(isolated);
        if missing.is_empty() {
            return None;
        }
        let path = &self.facts.cpus.isolated.path;
        let found = machine::or_empty(isolated);
        let reason = if !asked.is_domain() {
            "it has no `domain` flag, so it isolates from interrupts or ticks only".into()
        } else if built_with(self.facts, "CPU_ISOLATION") == Some(false) {
            "the kernel is built without CONFIG_CPU_ISOLATION".into()
        } else {
            self.not_there(&missing).unwrap_or_else(|| "the kernel did not take it".into())
        };
        bad(format!("{}, but {path} is {found}: {reason}", asked.written), self.wanted("isolcpus"))
    }

    /// CPUs asked for that the machine does not have.
    fn not_there(&self, cpus: &CpuList) -> Option<String> {
        let there = self.facts.cpus.existing()?;
        let beyond = cpus.difference(there);
        (!beyond.is_empty()).then(|| format!("this machine has {there}, no {beyond}"))
    }

    /// CPUs that the command line wants tickless: nohz_full, or isolcpus with the flag nohz.
    fn requested_nohz(&self) -> Option<&CpuParameter> {
        let by_flag = self.given("isolcpus").once();
        let by_flag = by_flag.filter(|asked| asked.flags.iter().any(|flag| flag == "nohz"));
        self.given("nohz_full").once().or(by_flag)
    }

    fn nohz_full_in_force(&self) -> Option<Fault> {
        let asked = self.requested_nohz()?;
        let cpus = asked.cpus()?;
        if built_with(self.facts, "NO_HZ_FULL") == Some(false) {
            let text =
                format!("{}, but the kernel is built without CONFIG_NO_HZ_FULL", asked.written);
            return bad(text, None);
        }
        let found = self.nohz_full?;
        let missing = cpus.difference(found);
        let reason = self.not_there(&missing).map_or(String::new(), |why| format!(": {why}"));
        let path = &self.facts.cpus.nohz_full.path;
        let text = format!("{}, but {path} is {}{reason}", asked.written, machine::or_empty(found));
        if missing.is_empty() { None } else { bad(text, self.wanted("nohz_full")) }
    }

    /// The real-time CPUs against the isolated ones.
    fn real_time_cpus(&self) -> Option<Fault> {
        let (isolated, rt) = (self.isolated?, &self.intent.rt_cpus);
        let open = rt.difference(isolated);
        if open.is_empty() {
            return None;
        }
        if !isolated.is_empty() {
            let (open, others) = (machine::cpus(&open), machine::cpus(isolated));
            let text = format!("{others} isolated, but the real-time {open} not");
            return bad(text, self.wanted("isolcpus"));
        }
        if is_all_rt(self.facts, self.intent) {
            let every = "every CPU is a real-time CPU: none is left to move work to";
            return match choice::propose(self.facts) {
                Ok(Proposal { cpus, why }) => {
                    let text = format!("choose fewer real-time CPUs, e.g. {cpus} ({why})");
                    doubtful(every.into(), Some(Remedy::Manual { text }))
                }
                Err(alone) => doubtful(alone, None),
            };
        }
        let text = format!("{} shared with ordinary tasks: no CPU is isolated", machine::cpus(rt));
        doubtful(text, self.wanted("isolcpus"))
    }

    /// Sets that no machine should have.
    fn shape(&self) -> Option<Fault> {
        let isolated = self.isolated?;
        let online = self.facts.cpus.online.value();
        let is_all =
            |online: &CpuList| !online.is_empty() && online.difference(isolated).is_empty();
        if online.is_some_and(is_all) {
            let text =
                format!("{} isolated: none is left for housekeeping", machine::cpus(isolated));
            return bad(text, None);
        }
        let text = "CPU 0 is isolated: boot interrupts and time keeping stay on it".into();
        if isolated.contains(0) { doubtful(text, None) } else { None }
    }

    /// Real-time CPUs that are offline.
    fn offline(&self) -> Option<Fault> {
        let cpus = offline_rt(self.facts, self.intent);
        if cpus.is_empty() {
            return None;
        }
        let control = self.facts.cpus.smt_control.value().map(String::as_str);
        // With SMT off the kernel refuses to bring a sibling back.
        let is_smt_off = matches!(control, Some("off" | "forceoff"));
        let why = if is_smt_off { " (SMT is off)" } else { ": nothing is known of it" };
        let paths = cpus.iter().map(|cpu| format!("/sys/devices/system/cpu/cpu{cpu}/online"));
        let remedy = Remedy::set(&ONLINE, paths.collect(), "1");
        let text = format!("real-time {} offline{why}", machine::cpus(&cpus));
        doubtful(text, (!is_smt_off).then_some(remedy))
    }

    /// nohz_full against isolated.
    fn ticks(&self) -> Vec<Fault> {
        let (Some(isolated), Some(nohz)) = (self.isolated, self.nohz_full) else {
            return vec![];
        };
        if nohz.is_empty() {
            return vec![];
        }
        let outside = nohz.difference(isolated);
        let ticking = isolated.intersection(&self.intent.rt_cpus).difference(nohz);
        let sides = format!("nohz_full {nohz}, isolated {}", machine::or_empty(isolated));
        let mut faults = Vec::new();
        if !outside.is_empty() {
            let text = format!("{} tickless but not isolated ({sides})", machine::cpus(&outside));
            faults.extend(doubtful(text, self.wanted("isolcpus")));
        }
        if !ticking.is_empty() {
            let text = format!("{} isolated but not tickless ({sides})", machine::cpus(&ticking));
            faults.extend(doubtful(text, self.wanted("nohz_full")));
        }
        faults
    }

    /// RCU callbacks: rcu_nocbs and nohz_full against the isolated real-time CPUs.
    fn callbacks(&self) -> Option<Fault> {
        let isolated = self.isolated?.intersection(&self.intent.rt_cpus);
        let asked = self.given("rcu_nocbs");
        if let (Some(asked), Some(false)) = (asked.once(), built_with(self.facts, "RCU_NOCB_CPU")) {
            let text =
                format!("{}, but the kernel is built without CONFIG_RCU_NOCB_CPU", asked.written);
            return bad(text, None);
        }
        let is_refused = matches!(asked.once().map(|a| &a.list), Some(List::Refused(_)));
        if self.given.is_none() || is_refused || matches!(asked, CmdlineValue::Conflicting(_)) {
            return None;
        }
        let is_all = built_with(self.facts, "RCU_NOCB_CPU_DEFAULT_ALL") == Some(true);
        if is_all && asked.once().is_none() {
            return None;
        }
        let none = CpuList::default();
        let offloaded = asked.cpus().unwrap_or(&none).union(self.nohz_full.unwrap_or(&none));
        let open = isolated.difference(&offloaded);
        let written = asked.once().map_or("no rcu_nocbs", |asked| &asked.written);
        let text =
            format!("{} isolated but keeps its RCU callbacks ({written})", machine::cpus(&open));
        if open.is_empty() { None } else { doubtful(text, self.wanted("rcu_nocbs")) }
    }

    /// irqaffinity against the isolated CPUs.
    fn interrupts(&self) -> Option<Fault> {
        let asked = self.given("irqaffinity").once()?;
        let by_parameter = self.given("isolcpus").cpus();
        let isolated = self.isolated.filter(|cpus| !cpus.is_empty()).or(by_parameter)?;
        let overlap = asked.cpus()?.intersection(isolated);
        let text =
            format!("{} sends interrupts to isolated {}", asked.written, machine::cpus(&overlap));
        if overlap.is_empty() { None } else { bad(text, self.wanted("irqaffinity")) }
    }

    /// Why not everything could be compared.
    fn incomparable(&self) -> Option<String> {
        fn why<T>(reading: &Reading<T>) -> Option<String> {
            reading.why_unknown().map(|why| format!("{}: {why}", reading.path))
        }
        let nohz = self.requested_nohz().and_then(|_| why(&self.facts.cpus.nohz_full));
        let unclear = KEYS.iter().find_map(|key| match self.given(key).once() {
            Some(CpuParameter { written, list: List::Unclear, .. }) => {
                Some(format!("{written}: the number of CPUs is unknown"))
            }
            _ => None,
        });
        why(&self.facts.kernel.cmdline)
            .or_else(|| why(&self.facts.cpus.isolated))
            .or(nohz)
            .or(unclear)
    }

    /// Evidence beyond the command line and the isolated CPUs.
    fn evidence(&self) -> Vec<Evidence> {
        let nohz = &self.facts.cpus.nohz_full;
        let is_asked = self.requested_nohz().is_some();
        let is_there = self.nohz_full.is_some_and(|cpus| !cpus.is_empty());
        let mut evidence = Vec::new();
        if is_asked || is_there {
            evidence.push(Evidence::of(nohz, machine::or_empty));
        }
        let is_default = built_with(self.facts, "RCU_NOCB_CPU_DEFAULT_ALL") == Some(true);
        if is_default && self.given("rcu_nocbs").once().is_none() {
            evidence.push(option(self.facts, "RCU_NOCB_CPU_DEFAULT_ALL"));
        }
        evidence
    }

    fn summary(&self) -> String {
        let mut parts =
            vec![format!("isolated {}", self.isolated.map_or("-".into(), machine::or_empty))];
        if let Some(nohz) = self.nohz_full.filter(|cpus| !cpus.is_empty()) {
            parts.push(format!("nohz_full {nohz}"));
        }
        for key in ["rcu_nocbs", "irqaffinity"] {
            if let Some(cpus) = self.given(key).cpus() {
                parts.push(format!("{key} {cpus}"));
            }
        }
        format!("{}: all agree", parts.join(", "))
    }
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
    fn unknown_is_reported_unless_something_is_bad() {
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
    fn an_isolated_cpu_that_is_offline_is_named() {
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
