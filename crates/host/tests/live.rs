//! The machine that runs the tests: any machine, so only what must hold on all of them.

use rtproof_host::{
    CpuList, Facts, HostSampler, Root, changed_facts, condition_id, facts::kernel::Preemption,
};

#[test]
fn facts_hold_together_and_survive_json() {
    let root = Root::live();
    let facts = Facts::read(&root);
    let json = serde_json::to_string(&facts).expect("facts serialise");
    let back: Facts = serde_json::from_str(&json).expect("facts come back");
    assert_eq!(back, facts);
    assert_eq!(back.rows(), facts.rows());

    let online = facts.cpus.online.value().expect("a live machine has CPUs online");
    let ids: Vec<u32> = facts.cpus.cpus.iter().map(|cpu| cpu.id).collect();
    assert_eq!(online.as_slice(), ids);
    let allowed = facts.cpus.allowed.value().expect("/proc/self/status is readable");
    assert!(!allowed.is_empty() && allowed.difference(online).is_empty());
    for cpu in &facts.cpus.cpus {
        assert!(cpu.siblings.value().is_none_or(|siblings| siblings.contains(cpu.id)));
        let states = cpu.idle_states.value().map(Vec::as_slice).unwrap_or_default();
        assert!(states.windows(2).all(|pair| pair[0].index < pair[1].index));
    }

    let release = facts.kernel.release.value().expect("release");
    let (major, minor) = facts.kernel.version.value().expect("version");
    assert!(release.starts_with(&format!("{major}.{minor}")));
    assert!(facts.kernel.build.value().is_some_and(|build| build.starts_with('#')));
    if facts.kernel.preemption.value() == Some(&Preemption::Rt) {
        assert!(facts.kernel.preemption.path != "/proc/cmdline");
    }
    assert!(facts.identity.memory_bytes.value().is_some_and(|&bytes| bytes > 1 << 20));
    let id = facts.identity.machine_id.value();
    assert!(id.is_none_or(|id| id.len() == 16 && id.chars().all(|c| c.is_ascii_hexdigit())));

    let own = std::process::id();
    for task in facts.rt_tasks.value().into_iter().flatten() {
        assert!(task.pid != own && task.policy.is_real_time() && task.priority <= 99);
    }
    let irqs = facts.irqs.irqs.value().map(Vec::as_slice).unwrap_or_default();
    assert!(irqs.windows(2).all(|pair| pair[0].number < pair[1].number));
    assert!(irqs.iter().all(|irq| !irq.actions.is_empty()));
    let steal = facts.virt.steal_ticks.value().expect("/proc/stat");
    assert_eq!(steal.len(), online.len());
}

#[test]
fn rows_are_stable() {
    let root = Root::live();
    let facts = Facts::read(&root);
    let rows = facts.rows();
    assert!(rows.windows(2).all(|pair| pair[0].key < pair[1].key));
    assert_eq!(condition_id(&rows), condition_id(&facts.rows()));
    assert_eq!(changed_facts(&facts, &facts), []);
}

#[test]
fn the_sampler_counts_and_finds_threads() {
    let root = Root::live();
    let facts = Facts::read(&root);
    let measured = facts.cpus.online.value().cloned().unwrap_or_default();
    let mut sampler = HostSampler::new(&root, &facts, &measured);
    let sample = sampler.sample(5);
    assert_eq!(sample.at_ns, 5);
    assert!(sample.interrupts.is_some() && sample.context_switches.is_some());
    let cpus = CpuList::new(sample.cpus.iter().map(|cpu| cpu.cpu));
    assert_eq!(Some(&cpus), sampler.online().value());
    let own = sampler.thread_placement(std::process::id());
    assert!(own.value().is_some_and(|place| measured.contains(place.cpu)));
    assert!(sampler.thread_placement(u32::MAX).is_absent());
}
