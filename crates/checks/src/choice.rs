//! Which CPUs to take for real-time work where nobody chose any, and whether a choice is sound.

use rtproof_host::{
    CpuList, Facts, Reading,
    facts::{cpu::Cpu, cpu_classes::CpuClass},
};

use crate::check::{Check, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::machine::{self, cpus};
use crate::{Evidence, Finding, Impact, Intent, Remedy};

/// Real-time CPUs that suit a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    pub cpus: CpuList,
    /// Reasons for these, and what is left for the rest.
    pub why: String,
}

/// A core that may be taken, with what tells it from others.
#[derive(PartialEq, Eq)]
struct Core {
    threads: CpuList,
    domain: Domain,
}

/// What all real-time CPUs should have in common.
#[derive(Clone, PartialEq, Eq)]
struct Domain {
    /// Rank of the kind, the fastest first.
    kind: usize,
    node: Option<u32>,
    cache: Option<CpuList>,
}

/// Real-time CPUs for this machine: whole cores of one kind, node and last-level cache, without
/// CPU 0, at most half of the cores.
///
/// # Errors
/// What is true of a machine of which no core can be kept free.
pub(crate) fn propose(facts: &Facts) -> Result<Proposal, String> {
    let Some(online) = facts.cpus.online.value().filter(|online| !online.is_empty()) else {
        return Err("the online CPUs are unknown".into());
    };
    let kinds = facts.cpus.classes();
    let cores = cores(facts, online, &kinds);
    if cores.len() < 2 {
        return Err(alone(facts, online));
    }
    let first = online.iter().next().unwrap_or_default();
    let free: Vec<&Core> = cores.iter().filter(|core| !core.threads.contains(first)).collect();
    let group = |core: &Core| free.iter().filter(|of| of.domain == core.domain).count();
    // Of two that are equal the last is taken, as it is farther from CPU 0.
    let best = free.iter().max_by_key(|core| (std::cmp::Reverse(core.domain.kind), group(core)));
    let Some(domain) = best.map(|core| core.domain.clone()) else {
        return Err(alone(facts, online));
    };
    let mut taken: Vec<&Core> = free.into_iter().filter(|core| core.domain == domain).collect();
    // A node keeps a core for its own interrupts and workers.
    let of_node = cores.iter().filter(|core| core.domain.node == domain.node).count();
    let most = (cores.len() / 2).min(of_node - 1).max(1);
    taken.drain(..taken.len().saturating_sub(most));
    let all = taken.iter().fold(CpuList::default(), |all, core| all.union(&core.threads));
    let why = reasons(facts, &kinds, &cores, &domain, &all);
    let rest = cpus(&online.difference(&all));
    Ok(Proposal { cpus: all, why: format!("{}; {rest} left for the rest", why.join(", ")) })
}

/// Why no core can be kept free.
fn alone(facts: &Facts, online: &CpuList) -> String {
    let expect = "no isolation is possible; expect interrupts, kernel threads and all other tasks \
                  beside the real-time thread";
    let offline = facts.cpus.offline().filter(|offline| !offline.is_empty());
    match (online.len(), offline) {
        (1, Some(offline)) => {
            format!("{} is online alone ({offline} offline): {expect}", cpus(online))
        }
        (1, None) if machine::guest(facts).is_some() => format!("one virtual CPU: {expect}"),
        (1, None) => format!("one CPU: {expect}"),
        _ => format!("{} are threads of one core: {expect}", cpus(online)),
    }
}

/// The online cores, ascending. CPUs whose siblings are unknown count as cores.
fn cores(facts: &Facts, online: &CpuList, kinds: &[CpuClass]) -> Vec<Core> {
    let nodes = facts.cpus.nodes.value().map(Vec::as_slice).unwrap_or_default();
    // Where no two cores share a cache, as in many guests, it tells nothing apart.
    let own = |cpu: &Cpu| cpu.siblings.value().cloned().unwrap_or_default().union(&one(cpu.id));
    let is_shared = |cpu: &Cpu| {
        cpu.last_level_cpus.value().is_some_and(|cpus| !cpus.difference(&own(cpu)).is_empty())
    };
    let has_caches = facts.cpus.cpus.iter().any(is_shared);
    let mut cores: Vec<Core> = Vec::new();
    for cpu in &facts.cpus.cpus {
        if cores.iter().any(|core| core.threads.contains(cpu.id)) {
            continue;
        }
        let domain = Domain {
            kind: kinds.iter().position(|kind| kind.cpus.contains(cpu.id)).unwrap_or(kinds.len()),
            node: nodes.iter().find(|node| node.cpus.contains(cpu.id)).map(|node| node.id),
            cache: cpu.last_level_cpus.value().filter(|_| has_caches).cloned(),
        };
        cores.push(Core { threads: own(cpu).intersection(online), domain });
    }
    cores
}

fn one(cpu: u32) -> CpuList {
    CpuList::new([cpu])
}

fn reasons(
    facts: &Facts,
    kinds: &[CpuClass],
    cores: &[Core],
    domain: &Domain,
    taken: &CpuList,
) -> Vec<String> {
    let known = kinds.iter().filter(|kind| kind.is_known()).count();
    let mut why = Vec::new();
    if let Some(kind) = kinds.get(domain.kind).filter(|kind| known > 1 && kind.is_known()) {
        let fastest = if domain.kind == 0 && is_ranked(kinds) { "the fastest" } else { "one" };
        let name = [kind.part.clone(), kind.capacity.map(|of| format!("capacity {of}"))];
        let name: Vec<String> = name.into_iter().flatten().collect();
        why.push(match name.is_empty() {
            true => format!("{fastest} of {known} kinds ({})", describe(facts, kind)),
            false => format!("{fastest} of {known} kinds ({})", name.join(", ")),
        });
    }
    if let Some(node) = domain.node.filter(|_| cores.iter().any(|c| c.domain.node != domain.node)) {
        why.push(format!("node {node}"));
    }
    if domain.cache.is_some() && cores.iter().any(|core| core.domain.cache != domain.cache) {
        why.push("one last-level cache".into());
    }
    if cores.iter().any(|core| core.threads.len() > 1) {
        why.push("whole cores".into());
    }
    let first = cores.iter().flat_map(|core| core.threads.iter()).min().unwrap_or_default();
    why.push(format!("not CPU {first}"));
    let unknown = |cpu: &Cpu| taken.contains(cpu.id) && cpu.siblings.value().is_none();
    if facts.cpus.cpus.iter().any(unknown) {
        why.push("threads of a core unknown".into());
    }
    if domain.node.is_none() {
        why.push("nodes unknown".into());
    }
    why
}

/// Whether it is known which kind is faster. The frequency tells it of one design alone.
fn is_ranked(kinds: &[CpuClass]) -> bool {
    let known = || kinds.iter().filter(|kind| kind.is_known());
    let part = |kind: &CpuClass| kind.part.clone();
    let first = known().next().and_then(part);
    known().all(|kind| kind.capacity.is_some())
        || known().all(|kind| kind.max_hz.is_some() && part(kind).is_some() && part(kind) == first)
        || known().all(|kind| kind.part.as_deref().is_some_and(|part| part.ends_with("-core")))
}

/// What is known of a kind, with the range of its frequency.
fn describe(facts: &Facts, kind: &CpuClass) -> String {
    let mut parts: Vec<String> = kind.part.iter().cloned().collect();
    parts.extend(kind.capacity.map(|capacity| format!("capacity {capacity}")));
    let of: Vec<&Cpu> = facts.cpus.cpus.iter().filter(|cpu| kind.cpus.contains(cpu.id)).collect();
    let is_limited =
        of.iter().all(|cpu| cpu.freq.min_hz.value().is_some() && cpu.freq.max_hz.value().is_some());
    parts.extend(match kind.max_hz {
        Some(_) if is_limited => Some(machine::frequency_range(&of)),
        Some(most) => Some(format!("up to {} MHz", most / 1_000_000)),
        None => None,
    });
    parts.join(", ")
}

pub(crate) static CHECK: Check = Check {
    id: "rt-cpu-choice",
    title: "real-time CPUs that suit each other",
    why: "the same work takes longer on a slower kind of core, and a set that nobody chose is kept \
          free of nothing",
    source: "Documentation/scheduler/sched-capacity.rst; Documentation/ABI/testing/\
             sysfs-devices-system-cpu; Documentation/admin-guide/cpu-isolation.rst",
    trade_off: Some("an application that places its threads by kind can use several"),
    impact: Impact::Tens,
    wanted: Wanted::Text("chosen, and of one kind"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let kinds = facts.cpus.classes();
    let known: Vec<&CpuClass> = kinds.iter().filter(|kind| kind.is_known()).collect();
    if let Some(why) = &intent.proposed {
        return proposed(draft, facts, intent, &known, why);
    }
    let draft = draft.evidence(shown(facts, &intent.rt_cpus));
    if facts.cpus.online.value().is_some_and(|online| online.len() == 1) {
        return draft
            .read(&facts.cpus.online, CpuList::to_string)
            .not_applicable("one CPU is online: there is no choice");
    }
    let (found, missing) = machine::rt_cpus(facts, intent);
    if !missing.is_empty() {
        return draft.missing_cpus(facts, &missing);
    }
    let of_rt = |kind: &&&CpuClass| !kind.cpus.intersection(&intent.rt_cpus).is_empty();
    let own: Vec<&CpuClass> = known.iter().filter(of_rt).copied().collect();
    if own.len() > 1 {
        let instead = propose(facts).map(|it| format!(", e.g. {} ({})", cpus(&it.cpus), it.why));
        let text = format!("choose real-time CPUs of one kind{}", instead.unwrap_or_default());
        let count = own.len();
        return draft
            .remedies([Remedy::Manual { text }])
            .doubtful(format!("the real-time CPUs are of {count} kinds: {}", all(facts, &own)));
    }
    for cpu in found {
        let (capacity, most) = (&cpu.capacity, &cpu.freq.hardware_max_hz);
        if cpu.part.value().is_none() {
            return draft.unreadable(&cpu.part);
        } else if capacity.value().is_none() && most.value().is_none() {
            // One design may come at several speeds.
            return draft.unreadable(most);
        }
    }
    let Some(kind) = own.first() else {
        return draft.unknown("the kind of the real-time CPUs is unknown");
    };
    let text = format!("{} of one kind: {}", cpus(&intent.rt_cpus), describe(facts, kind));
    draft.good(match known.first().filter(|first| first.cpus != kind.cpus && is_ranked(&kinds)) {
        Some(faster) => format!("{text}; {} are faster", cpus(&faster.cpus)),
        None => text,
    })
}

/// Nobody chose: the proposal, why, and the kinds to choose from.
fn proposed(
    draft: FindingBuilder,
    facts: &Facts,
    intent: &Intent,
    known: &[&CpuClass],
    why: &str,
) -> Finding {
    let (online, isolated) = (&facts.cpus.online, &facts.cpus.isolated);
    let draft = draft.read(online, CpuList::to_string).read(isolated, machine::or_empty);
    let draft =
        draft.evidence(online.value().map(|online| shown(facts, online)).unwrap_or_default());
    let free = match (isolated.value(), facts.kernel.cmdline.value()) {
        (None, None) => "no real-time CPUs are chosen; which are isolated is unknown",
        _ => "no real-time CPUs are chosen, and none is isolated at boot",
    };
    let kinds = if known.len() > 1 { format!("; {}", all(facts, known)) } else { String::new() };
    let text = format!("use these or others: rtproof check --cpus {}", intent.rt_cpus);
    let set = cpus(&intent.rt_cpus);
    draft
        .remedies([Remedy::Manual { text }])
        .doubtful(format!("{free}; proposed: {set} ({why}){kinds}"))
}

/// Each kind with its CPUs.
fn all(facts: &Facts, kinds: &[&CpuClass]) -> String {
    let one = |kind: &&CpuClass| format!("{}: {}", cpus(&kind.cpus), describe(facts, kind));
    kinds.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// What tells kinds apart, of these CPUs: the files that there are.
fn shown(facts: &Facts, of: &CpuList) -> Vec<Evidence> {
    fn there<T>((_, reading): &(u32, &Reading<T>)) -> bool {
        reading.value().is_some()
    }
    let all = || facts.cpus.cpus.iter().filter(|cpu| of.contains(cpu.id));
    let mhz = |hz: &u64| format!("{} MHz", hz / 1_000_000);
    let part = all().map(|cpu| (cpu.id, &cpu.part)).filter(there);
    let capacity = all().map(|cpu| (cpu.id, &cpu.capacity)).filter(there);
    let most = all().map(|cpu| (cpu.id, &cpu.freq.hardware_max_hz)).filter(there);
    let mut shown = machine::grouped(part, String::clone);
    shown.extend(machine::grouped(capacity, u32::to_string));
    shown.extend(machine::grouped(most, mhz));
    shown
}

#[cfg(test)]
mod tests {
    use rtproof_host::facts::cpu::Node;

    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent, irq, set_cmdline, set_guest};

    /// `count` CPUs, each changed by its number. Nobody keeps any free.
    fn with(count: u32, change: impl Fn(&mut Cpu)) -> Facts {
        let mut facts = good();
        let first = facts.cpus.cpus[0].clone();
        let cpu = |id| {
            let siblings = Reading::known(format!("cpu{id}/siblings"), one(id));
            let all = Reading::known(format!("cpu{id}/shared"), CpuList::new(0..count));
            let mut cpu = Cpu { id, siblings, last_level_cpus: all, ..first.clone() };
            change(&mut cpu);
            cpu
        };
        facts.cpus.cpus = (0..count).map(cpu).collect();
        let all = || CpuList::new(0..count);
        let none =
            |reading: &Reading<CpuList>| Reading::known(reading.path.clone(), CpuList::default());
        facts.cpus.online = Reading::known("online", all());
        facts.cpus.present = Reading::known("present", all());
        facts.cpus.isolated = none(&facts.cpus.isolated);
        facts.cpus.nohz_full = none(&facts.cpus.nohz_full);
        set_cmdline(&mut facts, "quiet");
        facts.cpus.nodes = Reading::known("node", vec![Node { id: 0, cpus: all() }]);
        facts
    }

    fn set(facts: &Facts) -> String {
        propose(facts).map_or_else(|_| "none".into(), |proposal| proposal.cpus.to_string())
    }

    fn siblings(cpu: &mut Cpu, of: &[u32]) {
        cpu.siblings =
            Reading::known(format!("cpu{}/siblings", cpu.id), CpuList::new(of.iter().copied()));
    }

    fn kind(cpu: &mut Cpu, part: &str, capacity: u32, mhz: u64) {
        cpu.part = Reading::known("/proc/cpuinfo", part.into());
        cpu.capacity = Reading::known(format!("cpu{}/cpu_capacity", cpu.id), capacity);
        let most = Reading::known(format!("cpu{}/cpuinfo_max_freq", cpu.id), mhz * 1_000_000);
        cpu.freq.max_hz = most.clone();
        cpu.freq.hardware_max_hz = most;
    }

    #[test]
    fn half_of_equal_cores_without_the_first() {
        for (count, wanted) in [(2, "1"), (3, "2"), (4, "2-3"), (8, "4-7"), (64, "32-63")] {
            assert_eq!(set(&with(count, |_| ())), wanted, "{count}");
        }
        let offline = |facts: &mut Facts| {
            facts.cpus.cpus.retain(|cpu| cpu.id >= 4);
            facts.cpus.online = Reading::known("online", CpuList::new(4..8));
        };
        let mut facts = with(8, |_| ());
        offline(&mut facts);
        assert_eq!(set(&facts), "6-7", "none that is offline");
    }

    #[test]
    fn one_kind_node_cache_and_whole_cores() {
        // Little cores first, as on most phones and boards; big ones first on some.
        let little = |cpu: &mut Cpu| match cpu.id {
            0..4 => kind(cpu, "Cortex-A55", 300, 1_800),
            _ => kind(cpu, "Cortex-A76", 1024, 2_400),
        };
        assert_eq!(set(&with(6, little)), "4-5");
        let prime = |cpu: &mut Cpu| match cpu.id {
            0 => kind(cpu, "Cortex-X1", 1024, 2_900),
            1..4 => kind(cpu, "Cortex-A78", 900, 2_400),
            _ => kind(cpu, "Cortex-A55", 300, 1_800),
        };
        assert_eq!(set(&with(8, prime)), "1-3", "the fastest is CPU 0 alone");
        let juno = |cpu: &mut Cpu| match cpu.id {
            1 | 2 => kind(cpu, "Cortex-A57", 1024, 1_100),
            _ => kind(cpu, "Cortex-A53", 446, 850),
        };
        assert_eq!(set(&with(6, juno)), "1-2");
        // Threads numbered beside each other, and apart.
        assert_eq!(set(&with(8, |c| siblings(c, &[c.id & !1, c.id | 1]))), "4-7");
        assert_eq!(set(&with(8, |c| siblings(c, &[c.id % 4, c.id % 4 + 4]))), "2-3,6-7");
        let hybrid = |cpu: &mut Cpu| match cpu.id {
            0..4 => {
                cpu.part = Reading::known("/sys/devices/cpu_core/cpus", "P-core".into());
                siblings(cpu, &[cpu.id & !1, cpu.id | 1]);
            }
            _ => cpu.part = Reading::known("/sys/devices/cpu_atom/cpus", "E-core".into()),
        };
        assert_eq!(set(&with(8, hybrid)), "2-3");
        let caches = |cpu: &mut Cpu| {
            let of = cpu.id / 4 * 4;
            cpu.last_level_cpus = Reading::known("shared", CpuList::new(of..of + 4));
        };
        assert_eq!(set(&with(16, caches)), "12-15");
        let mut nodes = with(8, |_| ());
        let node = |id: u32| Node { id, cpus: CpuList::new((id..8).step_by(2)) };
        nodes.cpus.nodes = Reading::known("node", vec![node(0), node(1)]);
        assert_eq!(set(&nodes), "3,5,7", "each node keeps a CPU");
        // Of a guest whose CPUs each have a cache of their own.
        let own = |cpu: &mut Cpu| cpu.last_level_cpus = Reading::known("shared", one(cpu.id));
        assert_eq!(set(&with(4, own)), "2-3");
    }

    #[test]
    fn a_machine_of_which_no_core_can_be_kept_free() {
        let says = |facts: &Facts, word: &str| {
            let why = propose(facts).unwrap_err();
            assert!(why.contains(word), "{why}");
            let (cpus, proposed) = Intent::default_rt_cpus(facts);
            assert_eq!((&cpus, proposed), (facts.cpus.online.value().unwrap(), None));
            let all = Intent { rt_cpus: cpus, housekeeping: CpuList::default(), ..intent() };
            let isolation = crate::judge_one(crate::by_id("isolation").unwrap(), facts, &all);
            assert_eq!((isolation.status, isolation.summary.contains(&why)), (Doubtful, true));
            assert!(isolation.remedies.is_empty());
        };
        let mut one = with(1, |_| ());
        says(&one, "one CPU: no isolation is possible");
        assert_eq!(CHECK.judge(&one, &intent_of(&[0])).status, NotApplicable);
        set_guest(&mut one, "kvm");
        says(&one, "one virtual CPU");
        one.cpus.present = Reading::known("present", CpuList::new(0..4));
        says(&one, "(1-3 offline)");
        says(&with(2, |cpu| siblings(cpu, &[0, 1])), "threads of one core");
        let mut unknown = with(2, |_| ());
        unknown.cpus.online = Reading::absent("online");
        assert!(propose(&unknown).is_err());
    }

    fn intent_of(rt: &[u32]) -> Intent {
        Intent { rt_cpus: CpuList::new(rt.iter().copied()), ..intent() }
    }

    #[test]
    fn kinds_are_named_with_their_caps() {
        let capped = |cpu: &mut Cpu| match cpu.id {
            0..2 => {
                kind(cpu, "Cortex-A55", 300, 1_800);
                cpu.freq.max_hz = Reading::known("scaling_max_freq", 1_200_000_000);
            }
            _ => kind(cpu, "Cortex-A76", 1024, 2_400),
        };
        let facts = with(4, capped);
        let (rt_cpus, proposed) = Intent::default_rt_cpus(&facts);
        let found = CHECK.judge(&facts, &Intent { rt_cpus, proposed, ..intent() });
        assert_eq!(found.status, Doubtful);
        let says = "CPUs 0-1: Cortex-A55, capacity 300, 400-1200 MHz (the hardware can 1800 MHz)";
        assert!(found.summary.contains(says), "{}", found.summary);
        let mixed = CHECK.judge(&facts, &intent_of(&[1, 2]));
        assert_eq!(mixed.status, Doubtful);
        assert!(mixed.remedies[0].to_string().contains("CPUs 2-3"), "{:?}", mixed.remedies);
        assert_eq!(CHECK.judge(&facts, &intent_of(&[2, 3])).status, Good);
        let slow = CHECK.judge(&facts, &intent_of(&[1]));
        assert_eq!(slow.status, Good);
        assert_eq!(
            slow.summary,
            "CPU 1 of one kind: Cortex-A55, capacity 300, 400-1200 MHz (the hardware can 1800 \
             MHz); CPUs 2-3 are faster"
        );
        let unseen = |cpu: &mut Cpu| cpu.freq.hardware_max_hz = Reading::absent("cpuinfo_max_freq");
        assert_eq!(CHECK.judge(&with(4, unseen), &intent_of(&[2, 3])).status, Unknown);
    }

    #[test]
    fn nothing_is_bad_for_want_of_a_choice() {
        let facts = with(4, |_| ());
        let (rt_cpus, proposed) = Intent::default_rt_cpus(&facts);
        assert!(proposed.is_some());
        let intent = Intent { rt_cpus, proposed, ..intent() };
        for check in crate::all().filter(|check| check.needs == crate::Needs::OtherCpus) {
            let found = crate::judge_one(check, &facts, &intent);
            assert_ne!(found.status, crate::Status::Bad, "{found:?}");
        }
        let mut busy = facts;
        busy.irqs.irqs = Reading::known("/proc/interrupts", vec![irq(7, "eth0", &[2], &[2])]);
        let chosen = Intent { proposed: None, ..intent.clone() };
        let affinity = crate::by_id("irq-affinity").unwrap();
        let status = |intent| crate::judge_one(affinity, &busy, intent).status;
        assert_eq!((status(&intent), status(&chosen)), (Doubtful, crate::Status::Bad));
        busy.cpus.cpus.iter_mut().for_each(|cpu| {
            cpu.freq.governor = Reading::known("scaling_governor", "powersave".into());
            cpu.freq.min_hz = Reading::known("scaling_min_freq", 1);
        });
        let governor = crate::by_id("cpufreq-governor").unwrap();
        assert_eq!(crate::judge_one(governor, &busy, &intent).status, crate::Status::Bad);
    }
}
