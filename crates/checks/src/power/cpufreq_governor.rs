//! Does the frequency of the real-time CPUs stay where it is?
//!
//! The trap is the machine without cpufreq: in a guest the host decides, and it cannot be seen
//! from here; on bare metal the kernel may simply be built without it (`frequency::absent`).

use rtproof_host::knobs::power::GOVERNOR;
use rtproof_host::{CpuList, Facts, facts::cpu::Cpu};

use super::frequency::{absent, is_performance, limits, pinned_hz};
use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::{rt_cpus, without_cpu_folder};
use crate::text;
use crate::{Finding, Intent, Remedy};

pub(super) static CHECK: Check = Check {
    id: "cpufreq-governor",
    title: "frequency governor of the real-time CPUs",
    why: "other governors lower the frequency of an idle CPU: the next cycle starts slow, and the \
          switch itself stalls the CPU on some machines",
    source: "Documentation/admin-guide/pm/cpufreq.rst; \
             Documentation/core-api/real-time/kernel-configuration.rst; Codethink, \"Configuring \
             Linux systems to stabilise latency\"",
    wanted: Wanted::Text("performance"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.cpus(&intent.rt_cpus);
    let (cpus, missing) = rt_cpus(facts, intent);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    if let Some(why) = without_cpu_folder(facts) {
        return draft.no_cpu_folder(facts, why);
    }
    let governors = cpus.iter().map(|cpu| (cpu.id, &cpu.freq.governor));
    let draft = draft.saw(text::grouped(governors, String::clone));
    let varying: Vec<&Cpu> = cpus.iter().copied().filter(|cpu| varies(cpu)).collect();
    if !varying.is_empty() {
        return judge_varying(draft, &varying);
    }
    if let Some(blind) = cpus.iter().find(|cpu| cpu.freq.governor.value().is_none()) {
        let reading = &blind.freq.governor;
        return if reading.is_absent() { absent(draft, facts) } else { draft.blind(reading) };
    }
    if !missing.is_empty() {
        return draft.gone(facts, &missing);
    }
    let pinned: Vec<&Cpu> = cpus.into_iter().filter(|cpu| !is_performance(cpu)).collect();
    if pinned.is_empty() {
        return draft.good(format!("performance on {}", text::cpus(&intent.rt_cpus)));
    }
    judge_pinned(draft, &pinned)
}

/// Whether the frequency is known to follow the load.
fn varies(cpu: &Cpu) -> bool {
    let governor = cpu.freq.governor.value();
    governor.is_some_and(|governor| governor != "performance" && governor != "userspace")
        && pinned_hz(cpu).is_none()
}

fn judge_varying(draft: Draft, varying: &[&Cpu]) -> Finding {
    let mut governors: Vec<&str> =
        varying.iter().filter_map(|cpu| cpu.freq.governor.value().map(String::as_str)).collect();
    governors.sort_unstable();
    governors.dedup();
    let cpus = CpuList::new(varying.iter().map(|cpu| cpu.id));
    let paths = varying.iter().map(|cpu| cpu.freq.governor.path.clone()).collect();
    let remedies = [
        Remedy::set(&GOVERNOR, paths, "performance"),
        Remedy::Boot { parameter: "cpufreq.default_governor=performance".into() },
    ];
    let summary = format!("{} on {}", text::first_few(&governors, 3), text::cpus(&cpus));
    draft.remedies(remedies).bad(summary)
}

/// Every CPU is at performance, pinned by its limits, or set by hand; at least one is not at
/// performance.
fn judge_pinned(draft: Draft, pinned: &[&Cpu]) -> Finding {
    let cpus = CpuList::new(pinned.iter().map(|cpu| cpu.id));
    let draft = draft.saw(limits(pinned));
    if pinned.iter().all(|cpu| pinned_hz(cpu).is_some()) {
        return draft
            .good(format!("{}: pinned, lowest equals highest frequency", text::cpus(&cpus)));
    }
    let paths = pinned.iter().map(|cpu| cpu.freq.governor.path.clone()).collect();
    draft
        .remedies([Remedy::set(&GOVERNOR, paths, "performance")])
        .doubtful(format!("userspace on {}: a program sets the frequency", text::cpus(&cpus)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent, set_config, set_guest, set_without_sys};
    use rtproof_host::Reading;

    fn with(governors: &[(usize, &str)]) -> Facts {
        let mut facts = good();
        for &(cpu, governor) in governors {
            let reading = &mut facts.cpus.cpus[cpu].freq.governor;
            *reading = Reading::known(reading.path.clone(), governor.into());
        }
        facts
    }

    fn without_cpufreq() -> Facts {
        let mut facts = good();
        for cpu in &mut facts.cpus.cpus {
            cpu.freq.governor = Reading::absent(cpu.freq.governor.path.clone());
        }
        facts
    }

    #[test]
    fn only_the_real_time_cpus_matter() {
        let finding = CHECK.judge(&with(&[(0, "powersave")]), &intent());
        assert_eq!(finding.status, Good);
        assert_eq!(finding.evidence.len(), 1);
        let path = "/sys/devices/system/cpu/cpu{2-3}/cpufreq/scaling_governor";
        assert_eq!(finding.evidence[0].path, path);
    }

    #[test]
    fn another_governor_is_bad_and_names_its_cpus() {
        let finding = CHECK.judge(&with(&[(3, "schedutil")]), &intent());
        assert_eq!((finding.status, finding.summary.as_str()), (Bad, "schedutil on CPU 3"));
        let path = "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor".to_owned();
        let remedy = Remedy::set(&GOVERNOR, vec![path], "performance");
        assert_eq!(finding.remedies[0], remedy);
    }

    #[test]
    fn pinned_limits_do_as_well_and_userspace_is_somebody_s_choice() {
        let mut facts = with(&[(2, "schedutil"), (3, "userspace")]);
        let freq = &mut facts.cpus.cpus[2].freq;
        freq.min_hz = Reading::known(freq.min_hz.path.clone(), 4_100_000_000);
        assert_eq!(CHECK.judge(&facts, &intent()).status, Doubtful);
        let freq = &mut facts.cpus.cpus[3].freq;
        freq.min_hz = Reading::known(freq.min_hz.path.clone(), 4_100_000_000);
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
    }

    #[test]
    fn no_cpufreq_is_not_good() {
        let mut facts = without_cpufreq();
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        set_config(&mut facts, "CPU_FREQ", None);
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
        set_guest(&mut facts, "kvm");
        let finding = CHECK.judge(&facts, &intent());
        assert_eq!(finding.status, Unknown);
        assert!(finding.summary.contains("the host decides"), "{}", finding.summary);
    }

    #[test]
    fn without_sys_the_folder_is_missing_and_not_the_cpu() {
        let mut facts = without_cpufreq();
        set_guest(&mut facts, "kvm");
        set_without_sys(&mut facts);
        let finding = CHECK.judge(&facts, &intent());
        assert_eq!(finding.status, Unknown);
        assert_eq!(finding.summary, "/sys/devices/system/cpu: not there");
        facts.cpus.online = Reading::absent("/sys/devices/system/cpu/online");
        let none = Intent { rt_cpus: cpus(&[]), ..intent() };
        assert_eq!(
            CHECK.judge(&facts, &none).summary,
            "/sys/devices/system/cpu/online: not there; name the real-time CPUs with --cpus"
        );
    }

    #[test]
    fn an_offline_real_time_cpu_is_unknown() {
        let intent = Intent { rt_cpus: cpus(&[3, 7]), ..intent() };
        let finding = CHECK.judge(&good(), &intent);
        assert_eq!(
            (finding.status, finding.summary.as_str()),
            (Unknown, "CPU 7: not in this machine")
        );
    }
}
