//! Each single sample in a file beside the record, for analyses that histograms are too coarse for.
//!
//! `cpu,due_ns,latency_ns`, a line a sample: when it was due, after the first wake-up, and how late
//! the thread ran (of a workload that times a piece of work: how long that took). Of one thread
//! they are in the order of time. Missed wake-ups have none: `scheduled = lines + missed`.

use std::{
    fs::File,
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
};

use anyhow::Context;
use rtproof_judge::units;
use rtproof_measure::Slot;
use rtproof_record::run::Note;

use super::notes;

/// The file while it is written.
#[derive(Debug)]
pub(super) struct SampleFile {
    path: PathBuf,
    to: BufWriter<File>,
    lines: u64,
    unkept: u64,
    /// Why nothing is written any more.
    failed: Option<io::Error>,
}

impl SampleFile {
    /// A new file with its heading.
    ///
    /// # Errors
    /// There is one, or none can be made.
    #[expect(clippy::disallowed_methods, reason = "the user's own file")]
    pub(super) fn create(path: &Path) -> anyhow::Result<Self> {
        let failed = || format!("{}: cannot be made", path.display());
        let file = File::options().write(true).create_new(true).open(path).with_context(failed)?;
        let mut to = BufWriter::new(file);
        writeln!(to, "cpu,due_ns,latency_ns").with_context(failed)?;
        Ok(Self { path: path.to_owned(), to, lines: 0, unkept: 0, failed: None })
    }

    /// Writes the samples of a slot.
    pub(super) fn take(&mut self, cpu: u32, slot: &Slot, origin_ns: u64) {
        self.unkept += slot.kept.lost;
        for sample in slot.kept.as_slice() {
            if self.failed.is_some() {
                self.unkept += 1;
                continue;
            }
            let due_ns = sample.due_ns.saturating_sub(origin_ns);
            match writeln!(self.to, "{cpu},{due_ns},{}", sample.latency_ns) {
                Ok(()) => self.lines += 1,
                Err(error) => self.failed = Some(error),
            }
        }
    }

    /// Closes it; what it holds, and what of the samples it lacks.
    pub(super) fn finish(mut self, at_ns: u64) -> Note {
        let flushed = self.to.flush().and_then(|()| self.to.get_ref().sync_all());
        let failed = self.failed.take().or(flushed.err());
        let (path, lines) = (self.path.display(), units::grouped(self.lines));
        let why = match (failed, self.unkept) {
            (None, 0) => {
                return notes::samples(at_ns, format!("{path} holds each of the {lines} samples."));
            }
            (None, _) => "the collector was late, and they found no room".to_owned(),
            (Some(error), _) => format!("{error}; its last lines may be missing as well"),
        };
        let unkept = units::grouped(self.unkept);
        let text = format!("{path} holds {lines} samples; {unkept} are not in it: {why}.");
        notes::samples(at_ns, text)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests read the files that they made")]
mod tests {
    use rtproof_measure::Kept;

    use super::*;

    fn keeping(samples: usize) -> Slot {
        Slot { kept: Kept::new(samples), ..Slot::default() }
    }

    #[test]
    fn a_line_a_sample_and_what_is_missing_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.samples.csv");
        let mut file = SampleFile::create(&path).unwrap();
        assert!(SampleFile::create(&path).is_err(), "none is written over");
        let mut slot = keeping(2);
        slot.record_wake(1_000, 1_007);
        slot.record_wake(2_000, 2_009);
        file.take(3, &slot, 500);
        assert_eq!(file.lines, 2);
        slot.clear();
        for n in 3..=5 {
            slot.record_wake(n * 1_000, n * 1_000 + 1);
        }
        file.take(3, &slot, 500);
        let note = file.finish(9);
        assert!(note.text.contains("holds 4 samples; 1 are not in it"), "{}", note.text);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "cpu,due_ns,latency_ns\n3,500,7\n3,1500,9\n3,2500,1\n3,3500,1\n");
        let whole = SampleFile::create(&dir.path().join("b.samples.csv")).unwrap();
        assert!(whole.finish(9).text.ends_with("holds each of the 0 samples."));
    }

    #[test]
    fn a_full_disk_is_told_and_ends_nothing() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (path, to) = (PathBuf::from("x.csv"), BufWriter::with_capacity(8, full));
        let mut file = SampleFile { path, to, lines: 0, unkept: 0, failed: None };
        let mut slot = keeping(9);
        for n in 0..9 {
            slot.record_wake(n, n + 1);
        }
        file.take(0, &slot, 0);
        let note = file.finish(9);
        assert!(note.text.contains("No space left"), "{}", note.text);
    }
}
