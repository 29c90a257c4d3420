//! Can the frequency of the real-time CPUs move between its limits?
//!
//! Equal limits hold it whatever the governor does. The governor `performance` asks for the highest
//! all the time, which comes to the same (intel_pstate even sets both limits of HWP to it); what
//! the hardware does by itself within the limits is the question of `turbo-boost`.

use rtproof_host::{Facts, facts::cpu::Cpu};

use super::frequency::{absent, holding, is_performance, limits, numbers, pinned_hz};
use super::values;
use crate::check::{Check, Judge};
use crate::draft::Draft;
use crate::machine::rt_cpus;
use crate::profile::Choice;
use crate::text;
use crate::{Finding, Impact, Intent, Remedy};
use rtproof_host::knobs::power as knobs;

pub(super) static CHECK: Check = Check {
    id: "cpufreq-minmax",
    title: "lowest and highest frequency of the real-time CPUs",
    why: "between its limits the frequency follows the load: the same work takes longer after \
          idle, and some processors stop while they switch",
    source: "Documentation/admin-guide/pm/cpufreq.rst; drivers/cpufreq/intel_pstate.c \
             (intel_pstate_hwp_set); Codethink, \"Configuring Linux systems to stabilise latency\"",
    trade_off: Some(
        "a fixed frequency costs power and heat; sound on a desktop bears one that moves",
    ),
    impact: Impact::Tens,
    knobs: &[&knobs::HARDWARE_MAX_FREQ],
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let is_wish = intent.profile.choices.fixed_frequency == Choice::On;
    let wanted = if is_wish { "lowest equal to highest, or governor performance" } else { "known" };
    let draft = draft.wants(wanted).cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let (cpus, missing) = rt_cpus(facts, intent);
    let draft = draft.saw(limits(&cpus));
    let is_moving = |cpu: &&Cpu| {
        let limits = (cpu.freq.min_hz.value(), cpu.freq.max_hz.value());
        let is_open = matches!(limits, (Some(min), Some(max)) if min < max);
        is_open && cpu.freq.governor.value().is_some() && !is_performance(cpu)
    };
    let moving: Vec<&Cpu> = cpus.iter().copied().filter(is_moving).collect();
    if is_wish && !moving.is_empty() {
        let summary = format!("{}: {}", text::cpus(&numbers(&moving)), range(&moving));
        let draft = draft.saw(holding(&moving)).remedies(remedies(&moving));
        return draft.doubtful(summary);
    }
    for cpu in &cpus {
        for limit in [&cpu.freq.min_hz, &cpu.freq.max_hz] {
            if limit.is_absent() {
                return absent(draft, facts);
            } else if limit.value().is_none() {
                return draft.blind(limit);
            }
        }
        if pinned_hz(cpu).is_none() && cpu.freq.governor.value().is_none() {
            return draft.blind(&cpu.freq.governor);
        }
    }
    if !missing.is_empty() {
        return draft.gone(facts, &missing);
    }
    let open: Vec<&Cpu> = cpus.iter().copied().filter(|cpu| pinned_hz(cpu).is_none()).collect();
    let lowered = lowered(facts, intent, &cpus);
    if open.is_empty() {
        return draft.good(format!("fixed: {}{lowered}", range(&cpus)));
    }
    let governors = open.iter().map(|cpu| (cpu.id, &cpu.freq.governor));
    let draft = draft.saw(text::grouped(governors, String::clone));
    if moving.is_empty() {
        return draft
            .good(format!("governor performance asks for the highest: {}{lowered}", range(&cpus)));
    }
    draft.good(format!("it may move, which this profile bears: {}{lowered}", range(&moving)))
}

/// `800-4100 MHz`, over all of them.
fn range(cpus: &[&Cpu]) -> String {
    let of = |limit: fn(&Cpu) -> Option<u64>| cpus.iter().filter_map(move |cpu| limit(cpu));
    let min = of(|cpu| cpu.freq.min_hz.value().copied()).min().unwrap_or_default();
    let max = of(|cpu| cpu.freq.max_hz.value().copied()).max().unwrap_or_default();
    match (min / 1_000_000, max / 1_000_000) {
        (min, max) if min == max => format!("{max} MHz"),
        (min, max) => format!("{min}-{max} MHz"),
    }
}

/// Where the highest limit is below what the hardware can.
fn lowered(facts: &Facts, intent: &Intent, cpus: &[&Cpu]) -> String {
    let hardware = values::of_cpus(facts, intent, &knobs::HARDWARE_MAX_FREQ);
    let most = hardware.iter().filter_map(|(_, khz)| khz.value()?.parse::<u64>().ok()).max();
    let limit = cpus.iter().filter_map(|cpu| cpu.freq.max_hz.value()).max();
    match (most, limit) {
        (Some(khz), Some(&hz)) if hz < khz * 1_000 => {
            format!(" (the hardware can {} MHz)", khz / 1_000)
        }
        _ => String::new(),
    }
}

/// The governor first: it holds where limits cannot be equal.
fn remedies(moving: &[&Cpu]) -> Vec<Remedy> {
    let governors = moving.iter().map(|cpu| cpu.freq.governor.path.clone()).collect();
    let mut remedies = vec![Remedy::set(&knobs::GOVERNOR, governors, "performance")];
    let mut limits: Vec<u64> =
        moving.iter().filter_map(|c| c.freq.max_hz.value().copied()).collect();
    limits.sort_unstable();
    limits.dedup();
    for limit in limits {
        let of = moving.iter().filter(|cpu| cpu.freq.max_hz.value() == Some(&limit));
        let paths = of.map(|cpu| cpu.freq.min_hz.path.clone()).collect();
        remedies.push(Remedy::set(&knobs::MIN_FREQ, paths, (limit / 1_000).to_string()));
    }
    remedies
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent, set_config, set_guest};
    use crate::{Profile, profile::Kind};
    use rtproof_host::Reading;

    fn with(governor: &str, min_hz: u64) -> Facts {
        let mut facts = good();
        let freq = &mut facts.cpus.cpus[3].freq;
        freq.governor = Reading::known(freq.governor.path.clone(), governor.into());
        freq.min_hz = Reading::known(freq.min_hz.path.clone(), min_hz);
        facts
    }

    #[test]
    fn open_limits_are_doubtful_unless_the_governor_or_the_profile_closes_them() {
        let finding = CHECK.judge(&with("schedutil", 400_000_000), &intent());
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "CPU 3: 400-4100 MHz");
        let path = "/sys/devices/system/cpu/cpu3/cpufreq/scaling_min_freq".to_owned();
        let write = Remedy::set(&knobs::MIN_FREQ, vec![path], "4100000");
        assert_eq!(finding.remedies[1], write);
        let audio = Intent { profile: Profile::of(Kind::Audio), ..intent() };
        let finding = CHECK.judge(&with("schedutil", 400_000_000), &audio);
        assert_eq!(finding.status, Good);
        let finding = CHECK.judge(&with("schedutil", 4_100_000_000), &intent());
        assert_eq!(finding.status, Good);
        assert_eq!(CHECK.judge(&good(), &intent()).status, Good);
    }

    #[test]
    fn no_cpufreq_is_not_good() {
        let mut facts = good();
        for cpu in &mut facts.cpus.cpus {
            cpu.freq.min_hz = Reading::absent(cpu.freq.min_hz.path.clone());
        }
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        set_config(&mut facts, "CPU_FREQ", None);
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
        set_guest(&mut facts, "kvm");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
