//! The CPU changed its frequency.

use rtproof_trace::What;

use super::{
    claim::{Cause, Claim, Kind},
    order::{Order, order},
    scene::Moment,
    switch::path_ns,
};

/// A change of the CPU frequency.
#[derive(Debug)]
pub(super) struct Frequency;

impl Cause for Frequency {
    fn id(&self) -> &'static str {
        "frequency"
    }

    fn kind(&self) -> Kind {
        Kind::Power
    }

    fn title(&self) -> &'static str {
        "a change of the CPU frequency"
    }

    fn about(&self) -> &'static str {
        "cpu_frequency of this CPU in a stretch that nothing else explains: some CPUs stand still \
         while they change"
    }

    fn source(&self) -> &'static str {
        "Documentation/admin-guide/pm/cpufreq.rst"
    }

    fn checks(&self) -> &'static [&'static str] {
        &["cpufreq-governor", "cpufreq-minmax"]
    }

    fn claims(&self, moment: &Moment<'_>) -> Option<Claim> {
        let (scene, cpu) = (moment.scene, moment.scene.wake.cpu);
        if !moment.is_task() || moment.ns() <= path_ns(moment) || order(moment) == Order::Above {
            return None;
        }
        let change = scene.window.events.iter().find_map(|event| match &event.what {
            What::Frequency { of_cpu, khz }
                if *of_cpu == cpu && (moment.from_ns..=moment.to_ns).contains(&event.at_ns) =>
            {
                Some(*khz)
            }
            _ => None,
        })?;
        let claim = Claim::by(format!("to {} MHz", change / 1000)).or(&["stall", "irqs-off"]);
        Some(claim.manual("fix the frequency: governor performance, lowest = highest"))
    }
}
