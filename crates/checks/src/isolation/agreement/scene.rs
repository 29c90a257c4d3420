//! The comparisons: each finds what contradicts what, and names both sides.

use rtproof_host::knobs::power::ONLINE;
use rtproof_host::{CpuList, Facts, Reading};

use crate::boot_params::{CpuParameter, Given, List};
use crate::machine::{built_with, is_all_rt, offline_rt, option};
use crate::text;
use crate::{Evidence, Intent, Remedy, Status};

pub(super) const KEYS: [&str; 4] = ["isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity"];
/// Flags that isolcpus knows; the kernel skips others.
const FLAGS: [&str; 3] = ["nohz", "domain", "managed_irq"];

pub(super) struct Fault {
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
pub(super) struct Scene<'a> {
    facts: &'a Facts,
    intent: &'a Intent,
    /// `None`: the command line is unknown.
    given: Option<[Given; 4]>,
    /// CPUs isolated in force; `None`: unknown.
    isolated: Option<&'a CpuList>,
    /// CPUs in full-tickless mode; `None`: unknown, or this kernel has no such mode.
    nohz_full: Option<&'a CpuList>,
}

impl<'a> Scene<'a> {
    pub(super) fn of(facts: &'a Facts, intent: &'a Intent) -> Self {
        let line = facts.kernel.cmdline.value();
        Self {
            facts,
            intent,
            given: line.map(|line| KEYS.map(|key| Given::of(facts, line, key))),
            isolated: facts.cpus.isolated.value(),
            nohz_full: facts.cpus.nohz_full.value(),
        }
    }

    /// Every contradiction, the worst first.
    pub(super) fn faults(&self) -> Vec<Fault> {
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

    fn given(&self, key: &str) -> &Given {
        let index = KEYS.iter().position(|known| *known == key);
        match (&self.given, index) {
            (Some(given), Some(index)) => &given[index],
            _ => &Given::Not,
        }
    }

    /// The parameter that is to be there, with the real-time CPUs.
    fn wanted(&self, key: &str) -> Option<Remedy> {
        let cpus = match key {
            "irqaffinity" => &self.intent.housekeeping,
            _ => &self.intent.rt_cpus,
        };
        let flags = if key == "isolcpus" { "managed_irq,domain," } else { "" };
        (!cpus.is_empty()).then(|| Remedy::Boot { parameter: format!("{key}={flags}{cpus}") })
    }

    /// Lists that the kernel refuses, and keys given twice.
    fn lists(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        for key in KEYS {
            match self.given(key) {
                Given::Conflicting(written) => faults.extend(doubtful(
                    format!("{} on one command line", written.join(" and ")),
                    self.wanted(key),
                )),
                Given::Once(CpuParameter { written, list: List::Refused(why), .. }) => {
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
        let found = text::or_empty(isolated);
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
        let possible = self.facts.cpus.possible.value()?;
        let beyond = cpus.difference(possible);
        (!beyond.is_empty()).then(|| format!("this machine has {possible}, no {beyond}"))
    }

    /// CPUs that the command line wants tickless: nohz_full, or isolcpus with the flag nohz.
    fn nohz_asked(&self) -> Option<&CpuParameter> {
        let by_flag = self.given("isolcpus").once();
        let by_flag = by_flag.filter(|asked| asked.flags.iter().any(|flag| flag == "nohz"));
        self.given("nohz_full").once().or(by_flag)
    }

    fn nohz_full_in_force(&self) -> Option<Fault> {
        let asked = self.nohz_asked()?;
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
        let text = format!("{}, but {path} is {}{reason}", asked.written, text::or_empty(found));
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
            let (open, others) = (text::cpus(&open), text::cpus(isolated));
            let text = format!("{others} isolated, but the real-time {open} not");
            return bad(text, self.wanted("isolcpus"));
        }
        if is_all_rt(self.facts, self.intent) {
            return doubtful(
                "every CPU is a real-time CPU: none is left to move work to".into(),
                Some(Remedy::Manual { text: "choose fewer real-time CPUs".into() }),
            );
        }
        let text = format!("{} shared with ordinary tasks: no CPU is isolated", text::cpus(rt));
        doubtful(text, self.wanted("isolcpus"))
    }

    /// Sets that no machine should have.
    fn shape(&self) -> Option<Fault> {
        let isolated = self.isolated?;
        let online = self.facts.cpus.online.value();
        let is_all =
            |online: &CpuList| !online.is_empty() && online.difference(isolated).is_empty();
        if online.is_some_and(is_all) {
            let text = format!("{} isolated: none is left for housekeeping", text::cpus(isolated));
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
        let text = format!("real-time {} offline{why}", text::cpus(&cpus));
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
        let beside = nohz.difference(isolated);
        let ticking = isolated.intersection(&self.intent.rt_cpus).difference(nohz);
        let sides = format!("nohz_full {nohz}, isolated {}", text::or_empty(isolated));
        let mut faults = Vec::new();
        if !beside.is_empty() {
            let text = format!("{} tickless but not isolated ({sides})", text::cpus(&beside));
            faults.extend(doubtful(text, self.wanted("isolcpus")));
        }
        if !ticking.is_empty() {
            let text = format!("{} isolated but not tickless ({sides})", text::cpus(&ticking));
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
        if self.given.is_none() || is_refused || matches!(asked, Given::Conflicting(_)) {
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
            format!("{} isolated but keeps its RCU callbacks ({written})", text::cpus(&open));
        if open.is_empty() { None } else { doubtful(text, self.wanted("rcu_nocbs")) }
    }

    /// irqaffinity against the isolated CPUs.
    fn interrupts(&self) -> Option<Fault> {
        let asked = self.given("irqaffinity").once()?;
        let by_parameter = self.given("isolcpus").cpus();
        let isolated = self.isolated.filter(|cpus| !cpus.is_empty()).or(by_parameter)?;
        let overlap = asked.cpus()?.intersection(isolated);
        let text =
            format!("{} sends interrupts to isolated {}", asked.written, text::cpus(&overlap));
        if overlap.is_empty() { None } else { bad(text, self.wanted("irqaffinity")) }
    }

    /// Why not everything could be compared.
    pub(super) fn blind(&self) -> Option<String> {
        fn why<T>(reading: &Reading<T>) -> Option<String> {
            reading.why_unknown().map(|why| format!("{}: {why}", reading.path))
        }
        let nohz = self.nohz_asked().and_then(|_| why(&self.facts.cpus.nohz_full));
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

    /// What was read beyond the command line and the isolated CPUs.
    pub(super) fn evidence(&self) -> Vec<Evidence> {
        let nohz = &self.facts.cpus.nohz_full;
        let is_asked = self.nohz_asked().is_some();
        let is_there = self.nohz_full.is_some_and(|cpus| !cpus.is_empty());
        let mut evidence = Vec::new();
        if is_asked || is_there {
            evidence.push(Evidence::of(nohz, text::or_empty));
        }
        let is_default = built_with(self.facts, "RCU_NOCB_CPU_DEFAULT_ALL") == Some(true);
        if is_default && self.given("rcu_nocbs").once().is_none() {
            evidence.push(option(self.facts, "RCU_NOCB_CPU_DEFAULT_ALL"));
        }
        evidence
    }

    pub(super) fn summary(&self) -> String {
        let mut parts =
            vec![format!("isolated {}", self.isolated.map_or("-".into(), text::or_empty))];
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
