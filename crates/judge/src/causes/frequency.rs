//! The CPU changed its frequency.

use rtproof_trace::What;

use super::{
    cause::{Attribution, Cause, Kind},
    order::{Order, order},
    scene::Moment,
    switch::path_ns,
};

pub(super) const CAUSE: Cause = Cause {
    id: "frequency",
    kind: Kind::Power,
    title: "a change of the CPU frequency",
    about: "cpu_frequency of this CPU in a stretch that nothing else explains: some CPUs stand \
        still while they change",
    source: "Documentation/admin-guide/pm/cpufreq.rst",
    checks: &["cpufreq-governor", "cpufreq-minmax"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    let (scene, cpu) = (moment.scene, moment.scene.wake.cpu);
    if !moment.is_task() || moment.ns() <= path_ns(moment) || order(moment) == Order::Above {
        return None;
    }
    let change = scene.rare().iter().find_map(|event| match &event.what {
        What::Frequency { of_cpu, khz }
            if *of_cpu == cpu && (moment.from_ns..=moment.to_ns).contains(&event.at_ns) =>
        {
            Some(*khz)
        }
        _ => None,
    })?;
    let attribution =
        Attribution::by(format!("to {} MHz", change / 1000)).or(&["stall", "irqs-off"]);
    Some(attribution.manual("fix the frequency: governor performance, lowest = highest"))
}
