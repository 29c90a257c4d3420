//! What an expert says first of a machine, before any list of findings: one sentence at most, and
//! only what the facts show for certain.

use rtproof_host::{
    CpuList, Facts,
    facts::{cpu::Cpu, kernel::Preemption},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::machine::{self, built_with, cpus, guest, rt_cpus};
use crate::{Finding, Intent, ns, power};

/// The one sentence, with its reason, as data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FirstSentence {
    /// Id of the situation: kebab-case, never changed.
    pub situation: &'static str,
    pub sentence: String,
    /// The reason, and the step that acts on it.
    pub why: String,
    /// Whether a plan of changes can help.
    #[serde(skip)]
    pub is_in_the_plan: bool,
}

/// Sentence and reason, where the machine is in the situation.
type Said = Option<(String, String)>;

type Situation = fn(&Facts, &Intent) -> Said;

/// Where no change of the configuration helps.
const BEYOND_PLANS: [&str; 4] = ["cokernel", "wsl", "stolen-time", "desktop-hypervisor"];

/// Each with the check that looks at the same, and is silent where the user leaves that out. Those
/// that alone decide stand above those that cost a share.
const SITUATIONS: &[(&str, &str, Situation)] = &[
    ("cokernel", "preempt-rt", cokernel),
    ("wsl", "hypervisor", wsl),
    ("tick-resolution", "high-res-timers", tick_resolution),
    ("stolen-time", "steal-time", stolen_time),
    ("desktop-hypervisor", "hypervisor", desktop_hypervisor),
    ("no-cpu-to-isolate", "isolation", no_cpu_to_isolate),
    ("not-preempt-rt", "preempt-rt", not_preempt_rt),
    ("bound-interrupt", "irq-affinity", bound_interrupt),
    ("idle-states", "cpuidle-states", idle_states),
    ("shared-cores", "smt-sibling-isolation", shared_cores),
    ("many-nodes", "numa-placement", many_nodes),
    ("low-frequency", "cpufreq-governor", low_frequency),
    ("nothing-kept-free", "isolation", nothing_kept_free),
];

/// The sentence for this machine; `None`: nothing stands out, or not for certain.
pub fn first_sentence(
    facts: &Facts,
    intent: &Intent,
    findings: &[Finding],
) -> Option<FirstSentence> {
    let said = SITUATIONS.iter().find_map(|&(situation, check, said)| {
        if intent.skip.contains_key(check) {
            return None;
        }
        let (sentence, why) = said(facts, intent)?;
        let is_in_the_plan = !BEYOND_PLANS.contains(&situation);
        Some(FirstSentence { situation, sentence, why, is_in_the_plan })
    });
    said.or_else(|| in_order(facts, findings))
}

fn cokernel(facts: &Facts, _: &Intent) -> Said {
    let core = facts.kernel.cokernel.value()?;
    let own = match core {
        core if core.contains("Cobalt") => "latency -p 1000 -T 600",
        core if core.contains("EVL") => "latmus -m -T 600",
        _ => "its own test of latency",
    };
    Some((
        format!("{core} runs real-time threads here, ahead of Linux."),
        format!(
            "These checks speak of the Linux side alone; threads of that core do not wait for it. \
             Measure them with {own}."
        ),
    ))
}

fn wsl(facts: &Facts, _: &Intent) -> Said {
    let release = facts.kernel.release.value()?.to_lowercase();
    release.contains("microsoft").then(|| {
        (
            "This is WSL, a guest of Windows: latencies measured here say nothing of Linux on \
             this hardware."
                .into(),
            "Windows schedules the virtual CPUs; a distribution's kernel package or boot parameter \
             has no effect. Boot Linux itself, from a live USB stick, and check it there."
                .into(),
        )
    })
}

/// Timers that expire at ticks which are longer than the period.
fn tick_resolution(facts: &Facts, intent: &Intent) -> Said {
    let hz: Option<u64> = facts.kernel.config.value().and_then(|it| it.get("HZ")?.parse().ok());
    let is_off = built_with(facts, "HIGH_RES_TIMERS") == Some(false)
        || facts.kernel.cmdline.value().is_some_and(|it| it.last("highres") == Some(Some("off")));
    let (tick_ns, shown) = match facts.platform.timer_resolution_ns.value() {
        Some(1) => return None,
        Some(&resolution) => (resolution, String::new()),
        None => {
            let hz = hz.filter(|&hz| is_off && hz > 0)?;
            (1_000_000_000 / hz, format!("HZ={hz}, "))
        }
    };
    (tick_ns > intent.period_ns).then(|| {
        (
            format!(
                "Timers expire on a tick of {} only ({shown}no high-resolution timers): a period \
                 of {} is impossible.",
                ns(tick_ns),
                ns(intent.period_ns)
            ),
            "Neither priority nor PREEMPT_RT changes when a timer expires: boot a kernel with \
             CONFIG_HIGH_RES_TIMERS=y."
                .into(),
        )
    })
}

/// From this share of stolen time on it stands first, in percent.
const STOLEN_PERCENT: u64 = 1;

/// /proc/stat counts in USER_HZ, which is 100 on all architectures but Alpha.
const USER_HZ: u64 = 100;

fn stolen_time(facts: &Facts, _: &Intent) -> Said {
    guest(facts)?;
    let stolen = facts.virt.steal_ticks.value().filter(|cpus| !cpus.is_empty())?;
    let up_ticks = facts.platform.uptime_s.value()?.checked_mul(USER_HZ)?;
    let all = up_ticks.checked_mul(u64::try_from(stolen.len()).ok()?)?;
    let ticks: u64 = stolen.iter().map(|(_, ticks)| ticks).sum();
    let percent = ticks.checked_mul(100)?.checked_div(all)?;
    (percent >= STOLEN_PERCENT).then(|| {
        let of = match stolen.len() {
            1 => "this guest's only CPU".to_owned(),
            many => format!("the time of this guest's {many} CPUs"),
        };
        (
            format!(
                "The host took {percent} % of {of} since boot: no setting inside the guest \
                 prevents that."
            ),
            "While a virtual CPU is stolen, real-time threads stand still, too. On the host: virsh \
             vcpupin GUEST 0 3, and nothing else on that CPU."
                .into(),
        )
    })
}

fn desktop_hypervisor(facts: &Facts, _: &Intent) -> Said {
    let name = guest(facts)?;
    matches!(name, "VirtualBox" | "Parallels" | "Apple Virtualization").then(|| {
        (
            format!("This is a guest of {name}: its latencies are those of the host's scheduler."),
            "The program that runs its virtual CPUs is an ordinary one of the host. Measure where \
             the application will run."
                .into(),
        )
    })
}

fn no_cpu_to_isolate(facts: &Facts, _: &Intent) -> Said {
    let online = facts.cpus.online.value()?;
    let existing = facts.cpus.existing()?;
    (online.len() == 1 && existing.len() == 1).then(|| {
        let what = match guest(facts) {
            Some(_) => "This guest has one virtual CPU",
            None => "This machine has one CPU",
        };
        (
            format!("{what}: nothing can be isolated, interrupts and all else share it."),
            "What is left is priority, a preemptible kernel and fewer devices.".into(),
        )
    })
}

/// Budget up to which a kernel without PREEMPT_RT is no basis: its maxima under load are of this
/// size.
const RT_NEEDED_NS: u64 = 1_000_000;

fn not_preempt_rt(facts: &Facts, intent: &Intent) -> Said {
    let model = facts.kernel.preemption.value().filter(|&&it| it != Preemption::Rt)?;
    let release = facts.kernel.release.value()?;
    intent.budget_ns.is_none_or(|budget_ns| budget_ns < RT_NEEDED_NS).then(|| {
        let basis = match intent.budget_ns {
            Some(budget_ns) => format!("no basis for {}", ns(budget_ns)),
            None => "no basis for a bound".into(),
        };
        let why = match model {
            Preemption::Full | Preemption::Lazy => {
                format!("It is preemptible elsewhere: fine on average, {basis}.")
            }
            Preemption::DynamicUnknown => {
                format!("Whether it is preemptible elsewhere could not be read: {basis}.")
            }
            _ => format!("Nor is it preemptible elsewhere at all times: {basis}."),
        };
        (
            format!(
                "{release} is not PREEMPT_RT: interrupt handlers and spinlock sections delay a \
                 SCHED_FIFO thread as long as they last."
            ),
            why,
        )
    })
}

/// Interrupts since boot from which one is named.
const OFTEN: u64 = 10_000;

/// An interrupt whose affinity names isolated CPUs and no others.
fn bound_interrupt(facts: &Facts, intent: &Intent) -> Said {
    let isolated = facts.cpus.isolated.value()?.intersection(&intent.rt_cpus);
    let counters = facts.isolation.counters.value()?;
    let (cpu, number, count) = counters
        .devices
        .iter()
        .filter(|device| isolated.contains(device.cpu))
        .filter_map(|device| device.most.map(|(number, count)| (device.cpu, number, count)))
        .max_by_key(|&(.., count)| count)?;
    let irq = facts.irqs.irqs.value()?.iter().find(|irq| irq.number == number)?;
    let asked = irq.requested.value()?;
    let is_bound = !asked.is_empty() && asked.difference(&isolated).is_empty() && !irq.managed;
    (is_bound && count >= OFTEN).then(|| {
        let others = &intent.housekeeping;
        let step = match others.is_empty() {
            true => String::new(),
            false => format!(": echo {others} > {}", irq.requested.path),
        };
        (
            format!(
                "IRQ {number} ({}) is bound to the isolated {} and came there {} times.",
                irq.actions,
                cpus(asked),
                rounded(count)
            ),
            format!(
                "Each time its handler and its soft interrupts run before the real-time thread on \
                 CPU {cpu}. Where the application does not drive this device itself, move it{step}"
            ),
        )
    })
}

/// A count with as many digits as one remembers: `9.8 million`, `25,000`.
fn rounded(count: u64) -> String {
    match count {
        1_000_000.. => format!("{}.{} million", count / 1_000_000, count % 1_000_000 / 100_000),
        1_000.. => format!("{},{:03}", count / 1_000, count % 1_000),
        few => few.to_string(),
    }
}

/// Idle states of the real-time CPUs that take longer than the budget to leave.
fn idle_states(facts: &Facts, intent: &Intent) -> Said {
    let budget_ns = intent.budget_ns?;
    if facts.cpu_dma_latency_us.value().copied().flatten().is_some() {
        return None;
    }
    let (known, _) = rt_cpus(facts, intent);
    let mut states: Vec<(&str, u64)> = Vec::new();
    for cpu in known.iter().filter(|cpu| !has_own_limit(cpu)) {
        for state in cpu.idle_states.value().into_iter().flatten() {
            let is_long = !state.disabled && state.exit_latency_ns > budget_ns;
            if is_long && !states.iter().any(|(name, _)| *name == state.name) {
                states.push((&state.name, state.exit_latency_ns));
            }
        }
    }
    states.sort_by_key(|&(_, exit_ns)| exit_ns);
    let named: Vec<String> =
        states.iter().map(|(name, exit_ns)| format!("{name} ({})", ns(*exit_ns))).collect();
    let list = match named.split_last()? {
        (last, []) => format!("idle state {last}"),
        (last, before) => format!("idle states {} and {last}", before.join(", ")),
    };
    Some((
        format!("Leaving {list} takes longer than the budget of {}.", ns(budget_ns)),
        format!(
            "An idle CPU has to leave its state before anything else runs: start the application \
             by rtproof run --dma-latency 0us --priority {}.",
            intent.priority
        ),
    ))
}

/// Whether its own file forbids idle states: 0 means no limit.
fn has_own_limit(cpu: &Cpu) -> bool {
    cpu.pm_qos_resume_latency_us.value().is_some_and(|limit| limit != "0")
}

/// Isolated CPUs whose core others use as well.
fn shared_cores(facts: &Facts, intent: &Intent) -> Said {
    let isolated = facts.cpus.isolated.value()?.intersection(&intent.rt_cpus);
    let (known, _) = rt_cpus(facts, intent);
    let own: Vec<&&Cpu> = known.iter().filter(|cpu| isolated.contains(cpu.id)).collect();
    let others = own
        .iter()
        .filter_map(|cpu| power::threads(cpu))
        .fold(CpuList::default(), |all, core| all.union(&core))
        .difference(facts.cpus.isolated.value()?);
    let online = facts.cpus.online.value()?;
    let others = others.intersection(online);
    (!others.is_empty()).then(|| {
        (
            format!(
                "Isolated {} share cores with {}, which may take ordinary work.",
                cpus(&isolated),
                cpus(&others)
            ),
            "What runs on the other thread takes up to half of the core and its caches.".into(),
        )
    })
}

/// Real-time CPUs that were chosen across the nodes of the machine.
fn many_nodes(facts: &Facts, intent: &Intent) -> Said {
    let online = facts.cpus.online.value()?;
    if intent.rt_cpus.difference(online).is_empty() && online.difference(&intent.rt_cpus).is_empty()
    {
        return None;
    }
    let nodes = facts.cpus.nodes.value()?;
    let of: Vec<(u32, CpuList)> = nodes
        .iter()
        .map(|node| (node.id, node.cpus.intersection(&intent.rt_cpus)))
        .filter(|(_, cpus)| !cpus.is_empty())
        .collect();
    let (largest, set) = of.iter().max_by_key(|(id, cpus)| (cpus.len(), std::cmp::Reverse(*id)))?;
    (of.len() > 1).then(|| {
        (
            format!(
                "The real-time {} lie on {} NUMA nodes: take those of one, as {} of node \
                 {largest}.",
                cpus(&intent.rt_cpus),
                of.len(),
                cpus(set)
            ),
            "Memory and devices of another node are farther away, and threads that share data pay \
             at each exchange."
                .into(),
        )
    })
}

/// Governors that raise the frequency only after work has begun.
const FOLLOWING: &[&str] = &["ondemand", "conservative", "schedutil"];

/// Real-time CPUs that a governor lets run at half of their frequency or less.
fn low_frequency(facts: &Facts, intent: &Intent) -> Said {
    let (known, missing) = rt_cpus(facts, intent);
    let first = known.first()?;
    let of = |cpu: &Cpu| {
        let governor = cpu.freq.governor.value()?;
        let driver = cpu.freq.driver.value()?;
        // In their active mode these choose by themselves, and min and max are bounds alone.
        let is_autonomous = matches!(driver.as_str(), "intel_pstate" | "amd-pstate-epp");
        let (min, max) = (*cpu.freq.min_hz.value()?, *cpu.freq.max_hz.value()?);
        let is_low = FOLLOWING.contains(&governor.as_str()) && !is_autonomous && min * 2 <= max;
        is_low.then(|| (governor.clone(), min, max))
    };
    let (governor, min, max) = of(first)?;
    let is_alike = known.iter().all(|cpu| of(cpu) == Some((governor.clone(), min, max)));
    (missing.is_empty() && is_alike && min > 0).then(|| {
        let ratio = max * 10 / min;
        (
            format!(
                "{} may run at {} of {} MHz when idle ({governor}): a cycle after idle takes up to \
                 {}.{} times as long.",
                cpus(&intent.rt_cpus),
                min / 1_000_000,
                max / 1_000_000,
                ratio / 10,
                ratio % 10
            ),
            "The governor speeds up after the work began: echo performance | sudo tee \
             /sys/devices/system/cpu/cpufreq/policy*/scaling_governor"
                .into(),
        )
    })
}

/// Nothing sets CPUs apart, and nobody named any.
fn nothing_kept_free(facts: &Facts, intent: &Intent) -> Said {
    let online = facts.cpus.online.value().filter(|online| online.len() > 2)?;
    let isolated = facts.cpus.isolated.value()?;
    let is_apart = facts.isolation.partitioned.value().is_some_and(|cpus| !cpus.is_empty());
    let is_open = intent.proposed.is_some() || machine::is_all_rt(facts, intent);
    (isolated.is_empty() && !is_apart && is_open).then(|| {
        let instead = match intent.proposed {
            Some(_) => format!(" {} would suit.", cpus(&intent.rt_cpus)),
            None => String::new(),
        };
        (
            format!(
                "No CPU is kept free: real-time threads share all {} with everything else.",
                online.len()
            ),
            format!("Interrupts and other tasks may come to each of them.{instead}"),
        )
    })
}

/// Nothing to do: one line instead of a list of what is unknown.
fn in_order(facts: &Facts, findings: &[Finding]) -> Option<FirstSentence> {
    let has_open = findings.iter().any(|finding| finding.skipped.is_none() && finding.is_open());
    let is_judged =
        findings.iter().filter(|it| it.status == crate::Status::Good).count() * 3 >= findings.len();
    if has_open || !is_judged {
        return None;
    }
    let isolated = facts.cpus.isolated.value().filter(|cpus| !cpus.is_empty());
    let free = isolated.map_or_else(String::new, |set| format!(" {} kept free.", are(set)));
    Some(FirstSentence {
        situation: "in-order",
        sentence: format!("Nothing that was read needs a change.{free}"),
        why: "What was not read is unknown; only a measurement proves the rest.".into(),
        is_in_the_plan: true,
    })
}

fn are(set: &CpuList) -> String {
    format!("{} {}", cpus(set), if set.len() == 1 { "is" } else { "are" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge_all;
    use crate::testing::{cpus, good, good_stock, intent, irq, set_cmdline, set_guest};
    use rtproof_host::Reading;
    use rtproof_host::facts::isolation::DeviceCount;

    fn situation(facts: &Facts, intent: &Intent) -> Option<&'static str> {
        first_sentence(facts, intent, &judge_all(facts, intent)).map(|first| first.situation)
    }

    fn with_budget(budget_ns: u64) -> Intent {
        Intent { budget_ns: Some(budget_ns), ..intent() }
    }

    #[test]
    fn a_machine_in_order_has_one_line_and_no_plan() {
        assert_eq!(situation(&good(), &intent()), Some("in-order"));
    }

    #[test]
    fn what_decides_alone_stands_first() {
        let mut facts = good_stock();
        assert_eq!(situation(&facts, &with_budget(100_000)), Some("not-preempt-rt"));
        assert_ne!(situation(&facts, &with_budget(5_000_000)), Some("not-preempt-rt"));
        set_guest(&mut facts, "VirtualBox");
        assert_eq!(situation(&facts, &intent()), Some("desktop-hypervisor"));
        facts.virt.steal_ticks = Reading::known("/proc/stat", vec![(0, 1_000_000)]);
        facts.platform.uptime_s = Reading::known("/proc/uptime", 100_000);
        assert_eq!(situation(&facts, &intent()), Some("stolen-time"));
        facts.platform.timer_resolution_ns = Reading::known("clock_getres", 4_000_000);
        assert_eq!(situation(&facts, &intent()), Some("tick-resolution"));
        facts.kernel.release =
            Reading::known("/proc/version", "6.6.87.2-microsoft-standard-WSL2".into());
        assert_eq!(situation(&facts, &intent()), Some("wsl"));
        facts.kernel.cokernel = Reading::known("/proc/xenomai/version", "Xenomai Cobalt 3".into());
        assert_eq!(situation(&facts, &intent()), Some("cokernel"));
    }

    #[test]
    fn a_period_longer_than_the_tick_is_possible() {
        let mut facts = good();
        facts.platform.timer_resolution_ns = Reading::known("clock_getres", 4_000_000);
        let slow = Intent { period_ns: 10_000_000, ..intent() };
        assert_ne!(situation(&facts, &slow), Some("tick-resolution"));
        facts.platform.timer_resolution_ns = Reading::absent("clock_getres");
        set_cmdline(&mut facts, "highres=off");
        facts.kernel.config = Reading::absent("/proc/config.gz");
        assert_ne!(situation(&facts, &intent()), Some("tick-resolution"), "HZ is not known");
    }

    #[test]
    fn an_interrupt_is_named_where_it_was_bound() {
        let with = |asked: &[u32], count| {
            let mut facts = good();
            let mut irqs = facts.irqs.irqs.value().cloned().unwrap();
            irqs.push(irq(45, "enp3s0-TxRx-0", asked, &[3]));
            facts.irqs.irqs = Reading::known("/proc/interrupts", irqs);
            let mut counters = facts.isolation.counters.value().cloned().unwrap();
            counters.devices[3] = DeviceCount { cpu: 3, count, most: Some((45, count)) };
            facts.isolation.counters = Reading::known("/proc/interrupts", counters);
            situation(&facts, &intent())
        };
        assert_eq!(with(&[3], 9_800_000), Some("bound-interrupt"));
        assert_ne!(with(&[3], 12), Some("bound-interrupt"));
        assert_ne!(with(&[0, 1, 2, 3], 9_800_000), Some("bound-interrupt"));
    }

    #[test]
    fn idle_states_count_against_the_budget_unless_something_forbids_them() {
        let mut facts = good();
        facts.cpu_dma_latency_us = Reading::known("/dev/cpu_dma_latency", None);
        for cpu in &mut facts.cpus.cpus {
            let states = cpu.idle_states.value().cloned().unwrap();
            let states = states.into_iter().map(|mut state| {
                state.disabled = false;
                state.exit_latency_ns = state.exit_latency_ns.max(133_000);
                state
            });
            cpu.idle_states = Reading::known("/sys/x", states.collect());
            cpu.pm_qos_resume_latency_us = Reading::known("/sys/y", "0".into());
        }
        assert_eq!(situation(&facts, &with_budget(100_000)), Some("idle-states"));
        assert_ne!(situation(&facts, &with_budget(500_000)), Some("idle-states"));
        let unbounded = Intent { budget_ns: None, ..intent() };
        assert_ne!(situation(&facts, &unbounded), Some("idle-states"));
        for cpu in &mut facts.cpus.cpus {
            cpu.pm_qos_resume_latency_us = Reading::known("/sys/y", "n/a".into());
        }
        assert_ne!(situation(&facts, &with_budget(100_000)), Some("idle-states"));
    }

    #[test]
    fn cpus_that_are_chosen_ill_are_named() {
        let mut facts = good();
        for (cpu, siblings) in facts.cpus.cpus.iter_mut().zip([[0, 2], [1, 3], [0, 2], [1, 3]]) {
            cpu.siblings = Reading::known("/sys/x", cpus(&siblings));
        }
        assert_eq!(situation(&facts, &intent()), Some("shared-cores"));
        let mut facts = good();
        let node = |id, set: &[u32]| rtproof_host::facts::cpu::Node { id, cpus: cpus(set) };
        facts.cpus.nodes = Reading::known("/sys/n", vec![node(0, &[0, 2]), node(1, &[1, 3])]);
        assert_eq!(situation(&facts, &intent()), Some("many-nodes"));
    }

    #[test]
    fn a_governor_that_follows_is_named_with_its_range() {
        let with = |governor: &str, driver: &str, min_hz| {
            let mut facts = good();
            for cpu in &mut facts.cpus.cpus {
                cpu.freq.governor = Reading::known("/sys/g", governor.into());
                cpu.freq.driver = Reading::known("/sys/d", driver.into());
                cpu.freq.min_hz = Reading::known("/sys/m", min_hz);
                cpu.freq.max_hz = Reading::known("/sys/x", 1_500_000_000);
            }
            situation(&facts, &intent())
        };
        assert_eq!(with("ondemand", "cpufreq-dt", 600_000_000), Some("low-frequency"));
        assert_ne!(with("performance", "cpufreq-dt", 600_000_000), Some("low-frequency"));
        assert_ne!(with("powersave", "intel_pstate", 600_000_000), Some("low-frequency"));
        assert_ne!(with("ondemand", "cpufreq-dt", 1_400_000_000), Some("low-frequency"));
    }

    #[test]
    fn what_the_user_leaves_out_is_not_said_and_nothing_is_guessed() {
        let mut intent = with_budget(100_000);
        intent.skip.insert("preempt-rt".into(), "another kernel comes".into());
        assert_ne!(situation(&good_stock(), &intent), Some("not-preempt-rt"));
        let mut facts = good_stock();
        facts.kernel.preemption = Reading::absent("/sys/kernel/realtime");
        assert_ne!(situation(&facts, &with_budget(100_000)), Some("not-preempt-rt"));
        facts.cpus.online = Reading::absent("/sys/devices/system/cpu/online");
        facts.cpus.isolated = Reading::absent("/sys/devices/system/cpu/isolated");
        assert_ne!(situation(&facts, &with_budget(100_000)), Some("nothing-kept-free"));
    }

    #[test]
    fn sentences_are_short() {
        let mut facts = good_stock();
        set_guest(&mut facts, "VirtualBox");
        for &(id, _, said) in SITUATIONS {
            if let Some((sentence, ..)) = said(&facts, &with_budget(100_000)) {
                assert!(sentence.split(' ').count() <= 25, "{id}: {sentence}");
            }
        }
    }
}
