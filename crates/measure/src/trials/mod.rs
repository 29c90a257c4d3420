//! Trials: short, bounded experiments on the live machine that show what a check can only infer.
//! One file each, one list.
//!
//! A trial observes and does not judge: `rtproof_judge::trials` makes a finding of what it saw.
//! It leaves the machine as it was: what it starts ends by itself, at a deadline that each of its
//! threads looks at, and settings of the kernel's tracers are put back, also after a kill.
//!
//! To add one: copy `_template.rs`, fill it in, add one line to [`TRIALS`]
//! and one variant to [`Observation`].

pub use rtproof_model::trial::{Observation, Refusal};

pub use self::trial::{Context, Length, Trial};
use crate::task::pin_all;

pub mod isolation;
pub mod memlock;
pub mod priority;
pub mod smi;
#[cfg(test)]
#[path = "_template.rs"]
mod template;
pub mod throttling;
mod trial;

/// Every trial, in the order in which they are run.
pub const TRIALS: &[&dyn Trial] = &[
    // One line each. What is over at once comes first.
    &priority::Priority,
    &memlock::Memlock,
    &throttling::Throttling,
    &isolation::Isolation,
    &smi::Smi,
];

/// The trial of that name.
pub fn find(name: &str) -> Option<&'static dyn Trial> {
    TRIALS.iter().copied().find(|trial| trial.name() == name)
}

/// Runs a trial in a thread of its own, so that policy and affinity of the caller stay.
///
/// # Errors
/// No thread can be started, or the trial panicked.
pub fn run(trial: &dyn Trial, ctx: &Context<'_>) -> std::io::Result<Observation> {
    let own = || {
        // A refusal changes where the trial's own work runs, not what it sees.
        let _ = crate::task::become_ordinary();
        let measured = trial.measured(ctx);
        let online = ctx.facts.cpus.online.value().cloned().unwrap_or_default();
        let rest = online.difference(&measured);
        if !measured.is_empty() && !rest.is_empty() {
            let _ = pin_all(rest.as_slice());
        }
        trial.observe(ctx)
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("rtproof/trial".into());
        let joined = thread.spawn_scoped(scope, own)?.join();
        joined.map_err(|_| std::io::Error::other("the trial panicked: report this as a bug"))
    })
}

#[cfg(test)]
pub(crate) mod testing {
    use std::path::PathBuf;

    use rtproof_host::{CpuList, Facts, Root};

    use super::*;
    use crate::loads::Settings;

    /// Runs a trial on this machine for a short time.
    pub(crate) fn try_out(trial: &dyn Trial, duration_ns: u64, stop: bool) -> Observation {
        try_with(trial, Facts::read(&Root::live()), duration_ns, stop)
    }

    /// The same as on a machine of one CPU: all of it runs on the last one.
    pub(crate) fn try_on_one_cpu(trial: &'static dyn Trial, duration_ns: u64) -> Observation {
        let mut facts = Facts::read(&Root::live());
        let last = facts.cpus.online.value().unwrap().iter().last().unwrap();
        facts.cpus.online = rtproof_host::Reading::known("/x", CpuList::new([last]));
        let pinned = move || {
            crate::task::pin(last).unwrap();
            try_with(trial, facts, duration_ns, false)
        };
        std::thread::spawn(pinned).join().unwrap()
    }

    fn try_with(trial: &dyn Trial, facts: Facts, duration_ns: u64, stop: bool) -> Observation {
        let root = Root::live();
        let online = facts.cpus.online.value().cloned().unwrap();
        let last = CpuList::new(online.iter().last());
        let loads = Settings {
            cpus: CpuList::default(),
            dir: PathBuf::new(),
            memory_available: 64 << 20,
            llc_bytes: 0,
            worker_command: (PathBuf::from("/nonexistent"), Vec::new()),
        };
        let ctx = Context {
            root: &root,
            facts: &facts,
            rt_cpus: &last,
            housekeeping: &online.difference(&last),
            priority: 10,
            duration_ns,
            memory_bytes: 1 << 20,
            loads: &loads,
            stop: &|| stop,
            progress: &|_| (),
        };
        run(trial, &ctx).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_differ() {
        for trial in TRIALS {
            assert_eq!(find(trial.name()).map(Trial::name), Some(trial.name()));
            assert!(trial.name().chars().all(|c| c.is_ascii_lowercase()), "{}", trial.name());
            assert!(!trial.about().is_empty() && !trial.about().contains('\n'));
            assert_eq!(TRIALS.iter().filter(|other| other.name() == trial.name()).count(), 1);
        }
        assert!(find("nothing").is_none());
    }

    #[test]
    fn a_time_is_bounded() {
        let length = Length::Time { default_ns: 3, longest_ns: 4 };
        assert_eq!((length.of(None), length.of(Some(2)), length.of(Some(9))), (3, 2, 4));
        assert_eq!(Length::AtOnce.of(Some(9)), 0);
    }

    #[test]
    fn the_template_runs() {
        let seen = testing::try_out(&template::Template, 0, false);
        assert!(matches!(seen, Observation::Priority(_)));
    }
}
