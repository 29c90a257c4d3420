//! How a run of interleaved slices ends, for `experiment` and `tune apply --prove`: measured,
//! undone, sealed, told: what `tune apply --prove` and `experiment` have in common.

use anyhow::Context;
use rtproof_host::{Facts, Root};
use rtproof_judge::{Report, early_end};
use rtproof_record::{Effects, Options, Run, effects::Decision, run::RunEnd};

use super::conduct::Conduct;
use crate::{
    commands::prove::Args,
    exit,
    prove::{self, finish::Sealed, output::Output},
    render::{self, text::Text},
};

/// Load of the whole time where none is asked for: that of `prove` after its idle part.
pub(crate) const LOAD: &str = "cpu+memory+net+disk";

/// A trial that was measured. The machine is as it was, but for what is kept.
pub(crate) struct Concluded {
    sealed: Sealed,
    html: anyhow::Result<()>,
}

/// Measures while `conduct` switches, then seals the record and writes the report.
///
/// # Errors
/// Threads that cannot run, a machine that could not be put back, a record that cannot be read.
pub(crate) fn conclude(
    root: &Root,
    facts: Facts,
    options: &Options,
    args: &Args,
    output: &Output,
    mut conduct: Conduct<'_>,
) -> anyhow::Result<Concluded> {
    let measured = prove::measure_with(root, facts, options, args, output, &mut conduct);
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
    let html = render::file::write_html(&output.html, &sealed.run, &report, None);
    Ok(Concluded { sealed, html })
}

impl Concluded {
    /// What was found.
    ///
    /// # Errors
    /// A record without it.
    pub(crate) fn effects(&self) -> anyhow::Result<&Effects> {
        self.sealed.run.effects.as_ref().context("the record holds no effects")
    }

    /// Whether it ran to its end.
    pub(crate) fn is_whole(&self) -> bool {
        cut_short(&self.sealed.run).is_none()
    }

    /// Prints what was found and where it is.
    ///
    /// # Errors
    /// Those of stdout; a record without effects.
    pub(crate) fn tell(&self, text: Text, output: &Output) -> anyhow::Result<()> {
        let effects = self.effects()?;
        text.print(|to| {
            render::text::effects::table(to, effects)?;
            if let Some(why) = cut_short(&self.sealed.run) {
                render::text::effects::line(to, &format!("cut short: {why}"))?;
            }
            let is_sealed = self.sealed.failure.is_none();
            render::text::files(to, output, is_sealed, self.html.is_ok())
        })?;
        Ok(())
    }

    /// The exit code: 3 where it was cut short or a knob was not decided.
    ///
    /// # Errors
    /// What is wrong with the record or the report, once everything else is told.
    pub(crate) fn code(self) -> anyhow::Result<u8> {
        let open = [Decision::CannotDecide, Decision::NotTried];
        let is_open = self.effects()?.knobs.iter().any(|knob| open.contains(&knob.decision));
        let code = if is_open || !self.is_whole() { exit::NOT_PROVEN } else { exit::ACCEPTED };
        if let Some(failure) = self.sealed.failure {
            return Err(failure);
        }
        self.html?;
        Ok(code)
    }
}

/// Why a run ended before its time.
pub(crate) fn cut_short(run: &Run) -> Option<String> {
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
pub(crate) fn seed() -> anyhow::Result<u64> {
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
    use crate::render::html::sample::{self, Shape};

    #[test]
    fn a_thread_that_ended_early_is_why() {
        let mut run = sample::run(&Shape::default());
        run.meta.ended = Some(RunEnd::Complete);
        assert_eq!(cut_short(&run), None);
        let cpu = run.threads[0].info.cpu;
        run.threads[0].end.as_mut().expect("an end").reason = EndReason::Starved;
        let why = cut_short(&run).expect("a reason");
        assert!(why.starts_with(&format!("the thread of CPU {cpu} ended itself")), "{why}");
    }
}
