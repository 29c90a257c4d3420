//! Which CPUs are isolated, by what (isolcpus, cpusets, affinity), and whether enough are left for
//! the rest.

use rtproof_host::{
    CpuList, Facts,
    facts::{cpu::Node, isolation::Hierarchy, kernel::Parameter},
};

use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::FindingBuilder;
use crate::machine::{CmdlineValue, CpuParameter, List, built_with};
use crate::profile::IsolationMethod;
use crate::{Evidence, Finding, Impact, Intent, Remedy, When, known, machine, since};

// Are two boot parameters run together?
//
// A tool that appends to a boot entry without a space makes one word of two, and the kernel takes
// neither for what it was meant: `console=ttyS0,115200n8spectre_v2=off`.

/// Parameters that tools append, as they are written.
const APPENDED: &[&str] = &[
    "audit",
    "clocksource",
    "default_hugepagesz",
    "hugepages",
    "hugepagesz",
    "idle",
    "intel_idle.max_cstate",
    "intel_iommu",
    "intel_pstate",
    "iommu",
    "irqaffinity",
    "isolcpus",
    "kthread_cpus",
    "mce",
    "mitigations",
    "nmi_watchdog",
    "nohz",
    "nohz_full",
    "nosoftlockup",
    "preempt",
    "processor.max_cstate",
    "rcu_nocbs",
    "rcupdate.rcu_normal_after_boot",
    "skew_tick",
    "spectre_v2",
    "systemd.cpu_affinity",
    "threadirqs",
    "tsc",
    "tuned.non_isolcpus",
    "workqueue.unbound_cpus",
];

pub(super) static CMDLINE_GLUED: Check = Check {
    id: "cmdline-glued",
    title: "boot parameters run together without a space",
    why: "neither of two parameters that became one word has its effect",
    source: "github.com/redhat-performance/tuned issue 268; lib/cmdline.c (next_arg)",
    when: When::Boot,
    wanted: Wanted::Text("a space between parameters"),
    judge: Judge::Ask(judge_cmdline_glued),
    ..Check::NEW
};

fn judge_cmdline_glued(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let cmdline = &facts.kernel.cmdline;
    let Some(line) = cmdline.value() else {
        return draft.unreadable(cmdline);
    };
    let glued: Vec<String> = line.parameters.iter().filter_map(glued).collect();
    let draft = draft.read(cmdline, |line| match glued.as_slice() {
        [] => machine::count(line.parameters.len(), "parameter"),
        words => words.join(" "),
    });
    if glued.is_empty() {
        return draft.good("no two parameters run together");
    }
    let text = "put a space between the two in the boot loader's entry, and boot".into();
    draft
        .remedies([Remedy::Manual { text }])
        .bad(format!("two parameters in one word: {}", machine::first_few(&glued, 3)))
}

/// A parameter whose value ends in another parameter, as written.
fn glued(parameter: &Parameter) -> Option<String> {
    let value = parameter.value.as_deref()?;
    let (before, _) = value.split_once('=')?;
    let is_end = |name: &&&str| {
        let start = before.strip_suffix(**name);
        // `ima_policy=x,audit=1` is a list of its own, and `root=UUID=...` a name.
        start.is_some_and(|start| start.ends_with(|c: char| c.is_ascii_alphanumeric()))
    };
    // Text in quotes has spaces, and is passed on as it is.
    let is_text = value.contains(' ');
    let _ = APPENDED.iter().find(is_end).filter(|_| !is_text)?;
    Some(format!("{}={value}", parameter.key))
}

pub(super) static CPU0_ISOLATED: Check = Check {
    id: "cpu0-isolated",
    title: "the boot CPU among the real-time or isolated CPUs",
    why: "what the kernel and its drivers set up at boot stays on CPU 0: interrupts of the \
          platform, timers, work that is not told where to run",
    source: "kernel/time/tick-common.c (tick_do_timer_cpu), arch/x86/kernel/apic/vector.c; \
             github.com/raspberrypi/linux issue 4106 (isolcpus=0 from 4.20)",
    trade_off: Some(
        "a machine with few CPUs, or one that reserves CPUs of another node, may have a reason",
    ),
    impact: Impact::Microseconds,
    when: When::Boot,
    needs: Needs::OtherCpus,
    wanted: Wanted::Text("CPU 0 left to housekeeping"),
    judge: Judge::Ask(judge_cpu0_isolated),
    ..Check::NEW
};

fn judge_cpu0_isolated(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let online = &facts.cpus.online;
    let draft = draft.read(online, CpuList::to_string);
    let Some(cpus) = online.value() else {
        return draft.unreadable(online);
    };
    if !cpus.contains(0) {
        return draft.not_applicable("CPU 0 is offline");
    }
    let instead = Remedy::Manual {
        text: "choose real-time CPUs without CPU 0; where it has to be, move interrupts and \
               workers off it by hand"
            .into(),
    };
    if intent.rt_cpus.contains(0) {
        let text = format!("CPU 0 is one of the real-time {}", machine::cpus(&intent.rt_cpus));
        return draft.remedies([instead]).doubtful(text);
    }
    let isolated = super::isolated(facts).filter(|isolated| isolated.contains(0));
    if let Some(isolated) = isolated {
        return draft
            .read(&facts.cpus.isolated, machine::or_empty)
            .remedies([instead])
            .doubtful(format!("CPU 0 is isolated ({isolated}) and no real-time CPU"));
    }
    draft.good("CPU 0 does housekeeping")
}

// Do the partitions of cgroup v2 hold what they promise?
//
// A partition may turn invalid long after it was made, by a change of another group or a CPU that
// goes offline; the file then says so and nothing else does.

pub(super) static CPUSET_PARTITION: Check = Check {
    id: "cpuset-partition",
    title: "partitions of CPUs made with cgroup v2",
    why: "a partition that is invalid isolates nothing: its CPUs are balanced as before",
    source: "Documentation/admin-guide/cgroup-v2.rst, cpuset.cpus.partition and \
             cpuset.cpus.isolated; kernel/cgroup/cpuset.c",
    impact: Impact::Hundreds,
    needs: Needs::RealTimeCpus,
    wanted: Wanted::Text("valid, and made of the real-time CPUs"),
    judge: Judge::Ask(judge_cpuset_partition),
    ..Check::NEW
};

fn judge_cpuset_partition(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let draft = match super::outside_containers(draft, facts) {
        Ok(draft) => draft,
        Err(finding) => return *finding,
    };
    let cpusets = &facts.isolation.cpusets;
    let draft = draft.read(cpusets, |found| match found.hierarchy {
        Hierarchy::V2 => "cgroup v2 with cpuset".into(),
        Hierarchy::V1 => "cpuset of cgroup v1".into(),
        Hierarchy::None => "no cpuset controller".into(),
    });
    let Some(found) = cpusets.value() else {
        return draft.unreadable(cpusets);
    };
    match found.hierarchy {
        Hierarchy::V1 => return draft.not_applicable("cgroup v1 has no partitions"),
        Hierarchy::None => return draft.not_applicable("no cpuset controller is in use"),
        Hierarchy::V2 => {}
    }
    let partitions: Vec<(&str, &str)> = found
        .groups
        .iter()
        .filter_map(|group| Some((group.name.as_str(), group.partition.as_deref()?)))
        .collect();
    let path = |name: &str| format!("/sys/fs/cgroup{name}/cpuset.cpus.partition");
    let draft = draft.evidence(
        partitions
            .iter()
            .map(|(name, kind)| Evidence { path: path(name), value: (*kind).to_owned() }),
    );
    if let Some((name, kind)) = partitions.iter().find(|(_, kind)| kind.contains("invalid")) {
        let text = format!("remove what makes it invalid, then write isolated to {}", path(name));
        return draft.remedies([Remedy::Manual { text }]).bad(format!("{name} is {kind}"));
    }
    if partitions.is_empty() {
        if !found.is_complete {
            return draft.unknown("too many control groups: not all were looked at");
        }
        return none(draft, facts, intent);
    }
    let isolated = &facts.isolation.partitioned;
    let draft = draft.read(isolated, machine::or_empty);
    let names: Vec<String> =
        partitions.iter().map(|(name, kind)| format!("{name} ({kind})")).collect();
    let names = machine::first_few(&names, 3);
    // Before 6.7 the root group does not say which CPUs are isolated.
    let Some(cpus) = isolated.value() else {
        return draft.unreadable(isolated);
    };
    let foreign = cpus.difference(&intent.rt_cpus);
    if !cpus.is_empty() && cpus.intersection(&intent.rt_cpus).is_empty() {
        return draft.doubtful(format!(
            "{names} isolates {}, none of the real-time {}",
            machine::cpus(cpus),
            machine::cpus(&intent.rt_cpus)
        ));
    }
    let others = match foreign.is_empty() {
        true => String::new(),
        false => format!("; {} beside the real-time CPUs", machine::cpus(&foreign)),
    };
    draft.good(format!("{names}{others}"))
}

fn none(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    if intent.profile.choices.isolation == IsolationMethod::Cpuset {
        let boot = &facts.cpus.isolated;
        let is_at_boot = |cpus: &CpuList| intent.rt_cpus.difference(cpus).is_empty();
        let how = if boot.value().is_some_and(is_at_boot) { ", isolcpus does it" } else { "" };
        return draft
            .read(boot, machine::or_empty)
            .remedies([super::partition(intent)])
            .doubtful(format!("no partition, which the profile wants{how}"));
    }
    draft.good("no partition is made, none is invalid")
}

// Are the groups that systemd puts everything into held off the real-time CPUs?

/// Groups of ordinary work. Real-time work is in a group of its own, or in machine.slice.
const ORDINARY: [&str; 3] = ["/init.scope", "/system.slice", "/user.slice"];

pub(super) static CPUSET_SHIELD: Check = Check {
    id: "cpuset-shield",
    title: "services and logins held off the real-time CPUs (AllowedCPUs)",
    why: "what starts in a group without CPUs of its own may run on any, the real-time ones too",
    source: "systemd.resource-control(5), AllowedCPUs=; Documentation/admin-guide/cgroup-v2.rst, \
             cpuset.cpus.effective",
    trade_off: Some(
        "an application in such a group cannot use the real-time CPUs either: it needs a slice of \
         its own",
    ),
    needs: Needs::OtherCpus,
    wanted: Wanted::Of(|intent| format!("{} at most", machine::cpus(&intent.housekeeping))),
    judge: Judge::Ask(judge_cpuset_shield),
    ..Check::NEW
};

fn judge_cpuset_shield(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let draft = match super::outside_containers(draft, facts) {
        Ok(draft) => draft,
        Err(finding) => return *finding,
    };
    let cpusets = &facts.isolation.cpusets;
    let Some(found) = cpusets.value() else {
        return draft.unreadable(cpusets);
    };
    let draft = draft.read(cpusets, |found| format!("{:?}", found.hierarchy));
    match found.hierarchy {
        Hierarchy::V1 => return draft.not_applicable("systemd sets no AllowedCPUs with cgroup v1"),
        Hierarchy::None => return draft.not_applicable("no cpuset controller is in use"),
        Hierarchy::V2 => {}
    }
    let mut open = Vec::new();
    let mut evidence = Vec::new();
    for group in found.groups.iter().filter(|group| ORDINARY.contains(&group.name.as_str())) {
        let cpus = group.effective.as_ref().or(found.effective.as_ref());
        let value = match (&group.effective, cpus) {
            (Some(cpus), _) => cpus.to_string(),
            (None, Some(cpus)) => format!("none of its own: {cpus}"),
            (None, None) => "none of its own".into(),
        };
        evidence.push(Evidence {
            path: format!("/sys/fs/cgroup{}/cpuset.cpus.effective", group.name),
            value,
        });
        if cpus.is_none_or(|cpus| !cpus.intersection(&intent.rt_cpus).is_empty()) {
            open.push(group.name.trim_start_matches('/'));
        }
    }
    let draft = draft.evidence(evidence.iter().cloned());
    if evidence.is_empty() {
        return draft.not_applicable("no group of systemd's: it does not run here");
    }
    if open.is_empty() {
        let groups = machine::count(evidence.len(), "group");
        return draft.good(format!("{groups} held off {}", machine::cpus(&intent.rt_cpus)));
    }
    // isolcpus is enough: process 1 and all that comes of it start without these CPUs.
    let is_boot = |cpus: &CpuList| intent.rt_cpus.difference(cpus).is_empty();
    if facts.cpus.isolated.value().is_some_and(is_boot) {
        return draft.read(&facts.cpus.isolated, machine::or_empty).good(format!(
            "{} may use {}, which isolcpus keeps them from unless they ask",
            open.join(", "),
            machine::cpus(&intent.rt_cpus)
        ));
    }
    let isolated =
        super::isolated(facts).map_or_else(|| "unknown".into(), |c| machine::or_empty(&c));
    draft.remedies(open.iter().map(|name| super::allow(name, &intent.housekeeping))).doubtful(
        format!(
            "{} may use the real-time {} (isolated: {isolated})",
            open.join(", "),
            machine::cpus(&intent.rt_cpus)
        ),
    )
}

// Are there CPUs left for everything else, on each node?

pub(super) static HK_SUFFICIENT: Check = Check {
    id: "hk-sufficient",
    title: "CPUs left for housekeeping",
    why: "interrupts, timers, RCU callbacks and workers that have nowhere else to go stay on the \
          real-time CPUs",
    source: "kernel/sched/isolation.c (housekeeping_setup: the boot CPU is taken back where none \
             is left); Documentation/timers/no_hz.rst",
    trade_off: Some("each CPU for housekeeping is one less for real-time work"),
    impact: Impact::Hundreds,
    when: When::Boot,
    needs: Needs::RealTimeCpus,
    wanted: Wanted::Text("one at least, on each node with real-time CPUs"),
    judge: Judge::Ask(judge_hk_sufficient),
    ..Check::NEW
};

fn judge_hk_sufficient(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let online = &facts.cpus.online;
    let draft = draft.read(online, CpuList::to_string);
    let Some(cpus) = online.value() else {
        return draft.unreadable(online);
    };
    let none = CpuList::default();
    let free = cpus.difference(&intent.rt_cpus);
    // One CPU is no machine to isolate on: nothing is wrong with its settings.
    if cpus.len() == 1 {
        return draft.not_applicable("one CPU is online");
    }
    let fewer = Remedy::Manual { text: "choose fewer real-time CPUs".into() };
    // `isolation` says so where that is: once is enough.
    if free.is_empty() {
        return draft.not_applicable(format!(
            "every one of {} is a real-time CPU: see isolation",
            machine::cpus(cpus)
        ));
    }
    let isolated = facts.cpus.isolated.value().unwrap_or(&none);
    let tickless = facts.cpus.nohz_full.value().unwrap_or(&none);
    let left = cpus.difference(isolated).difference(tickless);
    if left.is_empty() {
        let sides = Evidence::of(&facts.cpus.isolated, machine::or_empty);
        return draft.evidence([sides]).remedies([fewer]).bad(format!(
            "isolated {} and nohz_full {} leave no CPU",
            machine::or_empty(isolated),
            machine::or_empty(tickless)
        ));
    }
    let nodes = &facts.cpus.nodes;
    let Some(found) = nodes.value() else {
        return draft.unreadable(nodes);
    };
    let draft = draft.read(nodes, |nodes| machine::count(nodes.len(), "node"));
    let is_without = |node: &&Node| {
        let here = node.cpus.intersection(cpus);
        !here.intersection(&intent.rt_cpus).is_empty() && here.intersection(&free).is_empty()
    };
    let without: Vec<String> =
        found.iter().filter(is_without).map(|node| format!("node {}", node.id)).collect();
    if without.is_empty() {
        return draft.good(format!("{} left", machine::cpus(&free)));
    }
    // A proposal leaves none on a node that has no second core.
    draft.remedies(intent.proposed.is_none().then_some(fewer)).doubtful(format!(
        "{} left, none on {}",
        machine::cpus(&free),
        machine::first_few(&without, 4)
    ))
}

// Are the real-time CPUs out of load balancing, by whatever means?
//
// `isolation` compares what the boot parameters say; this asks what is so. isolcpus with flags but
// without `domain` takes nothing out of load balancing, despite its name: OpenShift
// boots so on purpose and lets the container runtime do the rest for each container.

pub(super) static ISOLCPUS: Check = Check {
    id: "isolcpus",
    title: "real-time CPUs taken out of load balancing",
    why: "the scheduler balances load across CPUs that are not isolated: it moves ordinary tasks \
          there, and its own search for imbalance runs there",
    source: "kernel/sched/isolation.c (housekeeping_isolcpus_setup), kernel/sched/topology.c; \
             Documentation/admin-guide/cgroup-v2.rst, cpuset.cpus.partition; Codethink, \
             stabilising latency",
    trade_off: Some(
        "isolated CPUs are idle when the real-time application is: nothing is moved there",
    ),
    impact: Impact::Hundreds,
    when: When::Boot,
    needs: Needs::OtherCpus,
    wanted: Wanted::Of(|intent| format!("{} isolated", machine::cpus(&intent.rt_cpus))),
    judge: Judge::Ask(judge_isolcpus),
    ..Check::NEW
};

fn judge_isolcpus(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let (boot, partitions) = (&facts.cpus.isolated, &facts.isolation.partitioned);
    let is_free = |cpus: &CpuList| intent.rt_cpus.difference(cpus).is_empty();
    let rt = machine::cpus(&intent.rt_cpus);
    if boot.value().is_some_and(is_free) {
        return draft.read(boot, machine::or_empty).good(format!("{rt} isolated at boot"));
    }
    if let Some(cpus) = partitions.value().filter(|cpus| !cpus.is_empty()) {
        let draft = draft.read(partitions, machine::or_empty);
        if is_free(cpus) {
            return draft.good(format!("{rt} isolated by a partition of cgroup v2"));
        }
        let Some(found) = boot.value() else {
            return draft.unreadable(boot);
        };
        let draft = draft.read(boot, machine::or_empty);
        let all = found.union(cpus);
        if is_free(&all) {
            return draft.good(format!("{rt} isolated at boot and by a partition"));
        }
        return not_isolated(draft, facts, intent, &all);
    }
    let draft = draft.read(boot, machine::or_empty);
    match (boot.value(), without_domain(facts)) {
        (Some(found), _) => not_isolated(draft, facts, intent, found),
        (None, Some(parameter)) => {
            let isolated = partitions.value().cloned().unwrap_or_default();
            draft
                .evidence([Evidence::of(&facts.kernel.cmdline, |_| parameter.written.clone())])
                .remedies(remedies_isolcpus(facts, intent, &isolated))
                .doubtful(format!(
                    "{} has no flag `domain`: load is balanced onto {rt}",
                    parameter.written
                ))
        }
        (None, None) => draft.unreadable(boot),
    }
}

/// isolcpus as given, where it takes no CPU out of load balancing.
fn without_domain(facts: &Facts) -> Option<CpuParameter> {
    let line = facts.kernel.cmdline.value()?;
    let given = CmdlineValue::of(facts, line, "isolcpus");
    given.once().filter(|parameter| parameter.cpus().is_some() && !parameter.is_domain()).cloned()
}

fn not_isolated(
    draft: FindingBuilder,
    facts: &Facts,
    intent: &Intent,
    isolated: &CpuList,
) -> Finding {
    let draft = draft.remedies(remedies_isolcpus(facts, intent, isolated));
    let (rt, path) = (machine::cpus(&intent.rt_cpus), &facts.cpus.isolated.path);
    if let Some(parameter) = without_domain(facts) {
        let cmdline = Evidence::of(&facts.kernel.cmdline, |_| parameter.written.clone());
        return draft.evidence([cmdline]).bad(format!(
            "{} has no flag `domain`, so {path} is {}: load is balanced onto {rt}",
            parameter.written,
            machine::or_empty(isolated)
        ));
    }
    if isolated.is_empty() {
        return draft.doubtful(format!("no CPU is isolated: load is balanced onto {rt}"));
    }
    let open = machine::cpus(&intent.rt_cpus.difference(isolated));
    draft.bad(format!("{} isolated, the real-time {open} not", machine::cpus(isolated)))
}

fn remedies_isolcpus(facts: &Facts, intent: &Intent, isolated: &CpuList) -> Vec<Remedy> {
    let all = isolated.union(&intent.rt_cpus);
    let boot = Remedy::Boot { parameter: known::isolcpus(facts, &all) };
    let partition = super::has_v2(facts).then(|| super::partition(intent));
    let (first, then) = match intent.profile.choices.isolation {
        IsolationMethod::Cpuset => (partition, Some(boot)),
        IsolationMethod::Boot => (Some(boot), None),
        IsolationMethod::Either => (Some(boot), partition),
    };
    first.into_iter().chain(then).collect()
}

// Are managed interrupts, which no write to smp_affinity moves, kept off the isolated CPUs?

pub(super) static ISOLCPUS_MANAGED_IRQ: Check = Check {
    id: "isolcpus-managed-irq",
    title: "managed interrupts of multi-queue devices kept off isolated CPUs",
    why: "the kernel spreads the queues of a disk or network card over all CPUs and refuses to \
          move their interrupts later",
    source: "kernel/irq/manage.c (irq_do_set_affinity), kernel/sched/isolation.c; \
             Documentation/admin-guide/kernel-parameters.txt, isolcpus; measured: EPERM on a write \
             to smp_affinity_list of a managed interrupt",
    trade_off: Some(
        "best effort: a queue whose CPUs are all isolated keeps its interrupt there, and fires \
         when an isolated CPU uses it",
    ),
    when: When::Boot,
    needs: Needs::OtherCpus,
    wanted: Wanted::Of(|intent| format!("isolcpus=managed_irq,…,{}", intent.rt_cpus)),
    judge: Judge::Ask(judge_isolcpus_managed_irq),
    ..Check::NEW
};

fn judge_isolcpus_managed_irq(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let cmdline = &facts.kernel.cmdline;
    let Some(line) = cmdline.value() else {
        return draft.unreadable(cmdline);
    };
    let given = CmdlineValue::of(facts, line, "isolcpus");
    let shown = |isolcpus: Option<&CpuParameter>| {
        isolcpus.map_or("no isolcpus=".into(), |a| a.written.clone())
    };
    let draft = draft.read(cmdline, |_| shown(given.once()));
    let isolated = super::isolated(facts).unwrap_or_default();
    let mut draft = draft.read(&facts.kernel.release, String::clone);
    if since(facts, known::MANAGED_IRQ) == Some(false) {
        draft = draft.read(&facts.cpus.isolated, machine::or_empty);
    }
    match known::takes_managed_irq(facts) {
        Some(true) => {}
        Some(false) => return draft.not_applicable("isolcpus= has the flag since Linux 5.6"),
        // On a kernel that does not know the flag it would cost all of isolcpus=.
        None => return draft.unreadable(&facts.kernel.release),
    }
    let parameter = known::isolcpus(facts, &isolated.union(&intent.rt_cpus));
    let draft = draft.remedies([Remedy::Boot { parameter }]);
    let Some(isolcpus) = given.once() else {
        if let CmdlineValue::Conflicting(written) = &given {
            return draft.unknown(format!("{} on one command line", written.join(" and ")));
        }
        let by_partition = facts.isolation.partitioned.value();
        if by_partition.is_some_and(|cpus| !cpus.intersection(&intent.rt_cpus).is_empty()) {
            return draft.read(&facts.isolation.partitioned, machine::or_empty).doubtful(
                "CPUs are isolated by a partition, which leaves managed interrupts where they are",
            );
        }
        return draft.not_applicable("no isolcpus= that the flag could belong to");
    };
    let has_flag = isolcpus.flags.iter().any(|flag| flag == "managed_irq");
    match &isolcpus.list {
        List::Unclear => {
            draft.unknown(format!("{}: the number of CPUs is unknown", isolcpus.written))
        }
        List::Refused(why) => draft.bad(format!("{} is refused: {why}", isolcpus.written)),
        List::Cpus(_) if !has_flag => draft.doubtful(format!(
            "{} has no flag `managed_irq`: managed interrupts may go to {}",
            isolcpus.written,
            machine::cpus(&intent.rt_cpus)
        )),
        List::Cpus(cpus) => {
            let open = intent.rt_cpus.difference(cpus);
            if open.is_empty() {
                return draft.good(isolcpus.written.clone());
            }
            let open = machine::cpus(&open);
            draft.doubtful(format!("{} leaves out the real-time {open}", isolcpus.written))
        }
    }
}

pub(super) static NUMA_PLACEMENT: Check = Check {
    id: "numa-placement",
    title: "real-time CPUs on one NUMA node",
    why: "memory, locks and devices of another node are reached through the link between the \
          sockets, which others load, too",
    source: "Documentation/admin-guide/mm/numaperf.rst; numactl(8); Wu, \"Real-time programming \
             with Linux, part 2\"",
    trade_off: Some(
        "CPUs of two nodes are no harm where each application keeps to one, with its memory",
    ),
    impact: Impact::Microseconds,
    needs: Needs::RealTimeCpus,
    wanted: Wanted::Text("one node"),
    judge: Judge::Ask(judge_numa_placement),
    ..Check::NEW
};

fn judge_numa_placement(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let nodes = &facts.cpus.nodes;
    let draft = draft.read(nodes, |nodes| {
        let show = |node: &Node| format!("node {}: {}", node.id, machine::or_empty(&node.cpus));
        nodes.iter().map(show).collect::<Vec<_>>().join("; ")
    });
    if nodes.is_absent() && built_with(facts, "NUMA") == Some(false) {
        return draft.built_without(facts, "NUMA");
    }
    let Some(found) = nodes.value() else {
        return draft.unreadable(nodes);
    };
    let with_cpus: Vec<&Node> = found.iter().filter(|node| !node.cpus.is_empty()).collect();
    if with_cpus.is_empty() {
        return draft.unknown("no node has CPUs");
    }
    let parts: Vec<String> = with_cpus
        .iter()
        .map(|node| (node, node.cpus.intersection(&intent.rt_cpus)))
        .filter(|(_, cpus)| !cpus.is_empty())
        .map(|(node, cpus)| format!("{} on node {}", short(&cpus), node.id))
        .collect();
    let covered = with_cpus.iter().fold(CpuList::default(), |all, node| all.union(&node.cpus));
    let homeless = intent.rt_cpus.difference(&covered);
    if parts.len() < 2 && !homeless.is_empty() {
        return draft.unknown(format!("no node has the real-time {}", machine::cpus(&homeless)));
    }
    match parts.as_slice() {
        [one] if with_cpus.len() == 1 => draft.good(format!("{one}, the only one")),
        [one] => draft.good(one.clone()),
        parts => {
            let text = "take real-time CPUs of one node, or give each application CPUs, memory \
                        (numactl --membind, or \
                        AllowedMemoryNodes=) and devices of one node"
                .into();
            draft.remedies([Remedy::Manual { text }]).doubtful(format!(
                "real-time CPUs on several nodes: {}",
                machine::first_few(parts, 4)
            ))
        }
    }
}

/// CPUs, or how many there are where the list is long: nodes take turns in it on many machines.
fn short(cpus: &CpuList) -> String {
    let list = machine::cpus(cpus);
    if list.len() <= 24 { list } else { machine::count(cpus.len(), "CPU") }
}

// Which CPUs does every service inherit?
//
// Process 1 passes its affinity on. systemd takes it from the boot parameter, else from
// `CPUAffinity=` of its configuration; /proc/1/status shows the affinity in force.

pub(super) static SYSTEMD_CPUAFFINITY: Check = Check {
    id: "systemd-cpuaffinity",
    title: "CPUs that every service inherits from process 1",
    why: "a service may run on every CPU that process 1 may, and wakes up on a real-time one",
    source: "systemd-system.conf(5), CPUAffinity=; kernel-command-line(7), systemd.cpu_affinity=; \
             tuned, profile cpu-partitioning; kernel/sched/core.c (sched_init_smp)",
    trade_off: Some(
        "the application inherits it, too: it has to ask for its CPUs, by CPUAffinity= of its unit \
         or taskset",
    ),
    when: When::Boot,
    needs: Needs::OtherCpus,
    wanted: Wanted::Of(|intent| format!("none of {}", machine::cpus(&intent.rt_cpus))),
    judge: Judge::Ask(judge_systemd_cpuaffinity),
    ..Check::NEW
};

fn judge_systemd_cpuaffinity(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let draft = match super::outside_containers(draft, facts) {
        Ok(draft) => draft,
        Err(finding) => return *finding,
    };
    let found = &facts.isolation;
    let init = &found.init_cpus;
    let draft = draft.read(init, CpuList::to_string);
    let asked = configured(facts);
    let Some(cpus) = init.value() else {
        let on = asked.as_ref().map(|(_, _, cpus)| cpus.intersection(&intent.rt_cpus));
        return match (asked, on) {
            (Some((evidence, written, _)), Some(on)) if !on.is_empty() => draft
                .evidence([evidence])
                .remedies(remedies_systemd_cpuaffinity(facts, intent, true))
                .bad(format!(
                    "{written} lets every service use the real-time {}",
                    machine::cpus(&on)
                )),
            _ => draft.unreadable(init),
        };
    };
    let on = cpus.intersection(&intent.rt_cpus);
    if on.is_empty() {
        return draft.good(format!("process 1 and what it starts: {}", machine::cpus(cpus)));
    }
    let is_systemd = found.init.value().is_some_and(|name| name == "systemd");
    let draft = draft.remedies(remedies_systemd_cpuaffinity(facts, intent, is_systemd));
    if let Some((evidence, written, wanted)) = asked {
        let draft = draft.evidence([evidence]);
        if wanted.intersection(&intent.rt_cpus).is_empty() {
            return draft.bad(format!(
                "{written}, but process 1 may use {}: the setting is not in force",
                machine::cpus(cpus)
            ));
        }
        return draft.bad(format!(
            "{written} lets every service use the real-time {}",
            machine::cpus(&wanted.intersection(&intent.rt_cpus))
        ));
    }
    draft.doubtful(format!("every service may use the real-time {}", machine::cpus(&on)))
}

/// What is configured: where, as written, and the CPUs. The boot parameter overrides the files.
fn configured(facts: &Facts) -> Option<(Evidence, String, CpuList)> {
    let cmdline = &facts.kernel.cmdline;
    let on_line = cmdline.value().and_then(|line| line.last("systemd.cpu_affinity").flatten());
    if let Some(value) = on_line {
        let cpus = CpuList::parse(value, None).ok()?;
        let written = format!("systemd.cpu_affinity={value}");
        return Some((Evidence::of(cmdline, |_| written.clone()), written, cpus));
    }
    let set = facts.isolation.manager_affinity.value()?.as_ref()?;
    let evidence = Evidence { path: set.file.clone(), value: format!("CPUAffinity={}", set.text) };
    let cpus = set.cpus.clone()?;
    Some((evidence, format!("CPUAffinity={cpus} ({})", set.file), cpus))
}

fn remedies_systemd_cpuaffinity(facts: &Facts, intent: &Intent, is_systemd: bool) -> Vec<Remedy> {
    let hk = &intent.housekeeping;
    if !is_systemd {
        let text = format!("let process 1 run on {} only", machine::cpus(hk));
        return vec![Remedy::Manual { text }];
    }
    let boot = Remedy::Boot { parameter: format!("systemd.cpu_affinity={hk}") };
    let cmdline = facts.kernel.cmdline.value();
    // The parameter overrides the files: where it is given, only it can be changed.
    if cmdline.is_some_and(|line| line.last("systemd.cpu_affinity").is_some()) {
        return vec![boot];
    }
    let file = Remedy::File {
        path: "/etc/systemd/system.conf.d/90-rtproof-affinity.conf".into(),
        line: format!("[Manager] CPUAffinity={hk}"),
    };
    vec![file, boot]
}

#[cfg(test)]
mod tests;
