//! A CPU goes away or comes back.

use rtproof_trace::What;

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    scene::{Moment, Phase},
};

/// Steps of taking a CPU away lie that close to what they hold up.
const NEAR_NS: u64 = 20_000_000;

pub(super) const CAUSE: Cause = Cause {
    id: "hotplug",
    kind: Kind::Scheduling,
    title: "a CPU taken away or brought back",
    about: "cpuhp events, with the stopper threads running on every CPU meanwhile (stop_machine)",
    source: "kernel/cpu.c (takedown_cpu); measured: 1.4 ms in a virtual machine that counts \
        instructions",
    checks: &[],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    let scene = moment.scene;
    let name = names::comm(scene, moment.cpu.task);
    let works = name.starts_with("migration/") || name.starts_with("cpuhp/");
    let near = |at_ns: u64| {
        at_ns + NEAR_NS >= moment.from_ns && at_ns <= moment.to_ns.saturating_add(NEAR_NS)
    };
    let elsewhere = matches!(moment.phase, Phase::Elsewhere(_));
    let held_up = matches!(moment.phase, Phase::TimerLate | Phase::Runnable) && works;
    if !(held_up || elsewhere || moment.phase == Phase::Blocked) {
        return None;
    }
    let step = scene.rare().iter().find_map(|event| match &event.what {
        What::Hotplug { of_cpu, .. } if near(event.at_ns) => Some(*of_cpu),
        _ => None,
    })?;
    let attribution =
        Attribution::by(format!("CPU {step}")).detail([format!("{name} was running")]);
    let text = "nothing may take CPUs off or on in operation: no suspend, no hot-unplug";
    Some(attribution.manual(text))
}
