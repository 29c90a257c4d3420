//! The end of a run: the record is closed, read back, judged and sealed.

use anyhow::Context;
use rtproof_host::{Facts, Root};
use rtproof_judge::{Report, Standing};
use rtproof_record::{Finished, Judgement, Run, Tail, WriteError, run::RunEnd};

use super::{collect::Collected, output::Output, snapshot::snapshot, writer::WriterThread};

/// A measured run whose record is not sealed yet.
#[derive(Debug)]
pub struct Finishing {
    /// The run, as read back from its record.
    pub run: Run,
    /// `None`: the record is torn.
    finished: Option<Finished>,
    failure: Option<WriteError>,
}

/// A run whose record is as good as it gets.
#[derive(Debug)]
pub struct Sealed {
    pub run: Run,
    /// Why the record is torn.
    pub failure: Option<anyhow::Error>,
}

/// Writes what is left, closes the record and reads it back.
///
/// # Errors
/// When not even what was written before can be read.
pub(super) fn close(
    root: &Root,
    collected: Collected,
    writer: WriterThread,
    ended: RunEnd,
    output: &Output,
) -> anyhow::Result<Finishing> {
    let facts = Facts::read(root);
    writer.tick(collected.tick);
    let facts = Some(snapshot(&facts));
    let tail = Tail { ended, facts, threads: collected.ends, options: None };
    end(tail, collected.failure, writer, output)
}

/// Closes the record and reads it back. `failure`: why it could not be written before.
///
/// # Errors
/// As [`close`].
pub(crate) fn end(
    tail: Tail,
    failed: Option<WriteError>,
    writer: WriterThread,
    output: &Output,
) -> anyhow::Result<Finishing> {
    let (finished, failure) = match writer.finish(tail) {
        (Some(finished), _) => (Some(finished), None),
        (None, failure) => (None, failed.or(failure)),
    };
    let opened = rtproof_record::read_shown(&output.record).with_context(|| {
        failure.as_ref().map_or("the record cannot be read back".into(), ToString::to_string)
    })?;
    Ok(Finishing { run: opened.run, finished, failure })
}

impl Finishing {
    /// What the record will be when the run is over.
    pub fn standing(&self) -> Standing {
        if self.finished.is_some() { Standing::Sealed } else { Standing::Torn }
    }

    /// Stores what was judged and seals the record.
    ///
    /// # Errors
    /// When the judgement cannot be expressed; for a record that cannot be written see
    /// [`Sealed::failure`].
    pub fn seal(self, report: &Report) -> anyhow::Result<Sealed> {
        let judgement = judgement(report);
        let failure = match (self.finished, self.failure) {
            (Some(finished), None) => finished
                .store_judgement(&judgement)
                .and_then(|()| finished.seal())
                .err()
                .map(|error| anyhow::Error::new(error).context("the record is not sealed")),
            (_, Some(failure)) => Some(anyhow::Error::new(failure).context("the record is torn")),
            (None, None) => Some(anyhow::anyhow!("the record is torn: its writer is gone")),
        };
        Ok(Sealed { run: self.run, failure })
    }
}

/// What is stored of a judgement.
pub fn judgement(report: &Report) -> Judgement {
    Judgement {
        findings: report.findings.clone(),
        verdict: report.verdict.clone(),
        summary: format!("{} {}", report.verdict.answer.text(), report.verdict.sentence),
    }
}
