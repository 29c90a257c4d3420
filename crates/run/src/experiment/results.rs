//! Results of a run of interleaved slices, for `experiment` and `tune apply --prove`: measured,
//! undone, sealed.

use std::path::Path;

use anyhow::Context;
use rtproof_host::{Facts, Root};
use rtproof_judge::{Report, early_end};
use rtproof_record::{Effects, Options, Run, effects::Decision, run::RunEnd};
use rtproof_results::Ended;

use super::conduct::Conduct;
use crate::prove::{self, Observer, finish::Sealed, output::Output};

/// Load of the whole time where none is asked for: that of `prove` after its idle part.
pub const LOAD: &str = "cpu+memory+net+disk";

/// A trial that was measured. The machine is as it was, but for what is kept.
#[derive(Debug)]
pub struct Results {
    pub sealed: Sealed,
    /// How it is judged.
    pub report: Report,
}

/// Measures while `conduct` switches, then seals the record.
///
/// # Errors
/// Threads that cannot run, a machine that could not be put back, a record that cannot be read.
pub fn measure(
    root: &Root,
    facts: Facts,
    options: &Options,
    load_dir: Option<&Path>,
    output: &Output,
    mut conduct: Conduct<'_>,
    observer: &mut dyn Observer,
) -> anyhow::Result<Results> {
    let measured = prove::measure(root, facts, options, load_dir, output, &mut conduct, observer);
    let trouble = conduct.end().trouble;
    let finished = match (measured, trouble) {
        (Ok(finished), None) => finished,
        (Ok(finished), Some(trouble)) => {
            let report = Report::new(&finished.run, &finished.standing());
            // What is wrong with the machine is worse than what may be wrong with the record.
            let _ = finished.seal(&report);
            return Err(trouble.context("run `rtproof tune undo`"));
        }
        (Err(error), None) => return Err(error),
        (Err(error), Some(trouble)) => {
            return Err(error.context(format!("run `rtproof tune undo`: {trouble:#}")));
        }
    };
    let report = Report::new(&finished.run, &finished.standing());
    let sealed = finished.seal(&report)?;
    Ok(Results { sealed, report })
}

impl Results {
    /// What was found.
    ///
    /// # Errors
    /// A record without it.
    pub fn effects(&self) -> anyhow::Result<&Effects> {
        self.sealed.run.effects.as_ref().context("the record holds no effects")
    }

    /// Whether it ran to its end.
    pub fn is_whole(&self) -> bool {
        cut_short(&self.sealed.run).is_none()
    }

    /// Why it was cut short, if it was.
    pub fn cut_short(&self) -> Option<String> {
        cut_short(&self.sealed.run)
    }

    /// How it ended: it cannot be decided if it was cut short or a knob is open.
    ///
    /// # Errors
    /// A record without effects.
    pub fn ended(&self) -> anyhow::Result<Ended> {
        let effects = self.effects()?;
        Ok(if is_open(effects) || !self.is_whole() { Ended::CannotTell } else { Ended::Done })
    }
}

/// Whether a knob is not decided.
pub fn is_open(effects: &Effects) -> bool {
    let open = [Decision::CannotDecide, Decision::NotTried];
    effects.knobs.iter().any(|knob| open.contains(&knob.decision))
}

/// Why a run ended before its time.
pub fn cut_short(run: &Run) -> Option<String> {
    match &run.meta.ended {
        // Where all threads ended by themselves nobody ended the run.
        Some(RunEnd::Complete) => {
            run.threads.iter().find_map(early_end).map(|how| format!("the {how}"))
        }
        Some(RunEnd::Interrupted { signal }) => Some(format!("{signal} came")),
        Some(RunEnd::Aborted { why }) => Some(why.clone()),
        None => Some("the record is torn".into()),
    }
}

/// 63 random bits.
///
/// # Errors
/// The kernel has none.
pub fn seed() -> anyhow::Result<u64> {
    let mut bytes = [0_u8; 8];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .context("no random bits for the order of slices")?;
    anyhow::ensure!(got == bytes.len(), "too few random bits for the order of slices");
    Ok(u64::from_le_bytes(bytes) >> 1)
}

#[cfg(test)]
mod tests {
    use rtproof_record::run::EndReason;

    use super::*;

    #[test]
    fn a_thread_that_ended_early_is_why() {
        let mut run = rtproof_judge::testing::run(rtproof_record::Class::Hundred, 2, 2, &[]);
        run.meta.ended = Some(RunEnd::Complete);
        assert_eq!(cut_short(&run), None);
        let cpu = run.threads[0].info.cpu;
        run.threads[0].end.as_mut().expect("an end").reason = EndReason::Starved;
        let why = cut_short(&run).expect("a reason");
        assert!(why.starts_with(&format!("the thread of CPU {cpu} ended itself")), "{why}");
    }
}
