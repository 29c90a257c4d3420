//! The folder of a matrix: its plan, a record and a report for each cell, the index.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use anyhow::Context;
use rtproof_host::Facts;
use rtproof_record::{SealState, run::RunEnd};
use rtproof_results::measure::plan::{Cell, Plan};

use crate::{
    file,
    prove::output::{self, Output},
    usage::usage,
};

const PLAN: &str = "plan.json";
const BYTES_MAX: u64 = 64 << 20;

/// A folder of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
}

/// What there is of a cell.
#[derive(Debug)]
pub enum Found {
    Nothing,
    /// All of it.
    Done(Box<rtproof_record::Run>),
    /// A run that was cut short: torn, interrupted or aborted.
    CutShort,
    /// A file that is no record, or one that was altered.
    Unusable(String),
}

impl Folder {
    /// A new folder, by name or `measure-HOST-TIME` in this one.
    ///
    /// # Errors
    /// There is one with something in it, or it cannot be made.
    pub fn create(wanted: Option<&Path>, facts: &Facts) -> anyhow::Result<Self> {
        let path = match wanted {
            Some(path) => path.to_owned(),
            None => output::free_name(Path::new(&output::default_name("measure", facts))),
        };
        #[expect(clippy::disallowed_methods, reason = "the user's own folder")]
        let entries = fs::read_dir(&path);
        if let Ok(mut entries) = entries {
            anyhow::ensure!(
                entries.next().is_none(),
                "{}: there already, and records are evidence that is never overwritten; go on with \
                 `rtproof measure --resume {0}`, or name another folder with --output",
                path.display()
            );
            return Ok(Self { path });
        }
        fs::create_dir(&path).with_context(|| {
            format!("{}: the folder cannot be made; name another with --output", path.display())
        })?;
        Ok(Self { path })
    }

    /// A folder that is there, and its plan; `anyones`: also one that another user owns or can
    /// write.
    ///
    /// # Errors
    /// There is none, it holds no plan, or another user could have written that.
    pub fn open(path: &Path, anyones: bool) -> anyhow::Result<(Self, Plan)> {
        let file = path.join(PLAN);
        let wrong = |what: String| {
            usage(format!("{}: {what}; --resume takes the folder of a matrix", file.display()))
        };
        let mut bytes = Vec::new();
        let read = rtproof_host::trusted::open_if(&file, anyones)
            .and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes));
        read.map_err(|error| wrong(error.to_string()))?;
        if bytes.len() as u64 > BYTES_MAX {
            return Err(wrong(format!("more than {BYTES_MAX} bytes")));
        }
        let plan: Plan = serde_json::from_slice(&bytes).map_err(|e| wrong(e.to_string()))?;
        if !plan.is_known() {
            return Err(wrong(format!("\"{}\" is of another version of rtproof", plan.schema)));
        }
        // Names of files come from here: none of them may lead elsewhere.
        let is_plain = |name: &str| !name.is_empty() && !name.contains('/') && name != "..";
        if let Some(cell) = plan.cells.iter().find(|cell| !is_plain(&cell.name)) {
            return Err(wrong(format!("cell {} has no plain name", cell.number)));
        }
        Ok((Self { path: path.to_owned() }, plan))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn keep(&self, plan: &Plan) -> anyhow::Result<()> {
        self.write(PLAN, &serde_json::to_vec_pretty(plan)?)
    }

    /// Writes a file whole, or leaves the one that is there.
    pub fn write(&self, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
        let path = self.path.join(name);
        file::write_whole(&path, |to| Ok(to.write_all(bytes)?))
            .with_context(|| format!("{}: cannot be written", path.display()))
    }

    /// The files of a cell.
    pub fn output(&self, cell: &Cell) -> Output {
        let with = |extension: &str| self.path.join(format!("{}.{extension}", cell.name));
        Output { record: with("rtproof"), html: with("html"), samples: None }
    }

    /// What there is of a cell.
    pub fn find(&self, cell: &Cell) -> Found {
        let record = self.output(cell).record;
        if record.symlink_metadata().is_err() {
            return Found::Nothing;
        }
        let opened = match rtproof_record::read(&record) {
            Ok(opened) => opened,
            Err(rtproof_record::ReadError::Empty { .. }) => return Found::CutShort,
            Err(error) => return Found::Unusable(error.to_string()),
        };
        match opened.state {
            SealState::Altered { why } => {
                Found::Unusable(format!("{}: altered after it was sealed: {why}", record.display()))
            }
            SealState::Sealed { .. } if opened.run.meta.ended == Some(RunEnd::Complete) => {
                Found::Done(Box::new(opened.run))
            }
            SealState::Sealed { .. } | SealState::Torn => Found::CutShort,
        }
    }

    /// Moves what there is of a cell aside, to be measured anew.
    ///
    /// # Errors
    /// When it cannot be moved.
    pub fn set_aside(&self, cell: &Cell) -> anyhow::Result<()> {
        let Output { record, html, .. } = self.output(cell);
        let samples = record.with_extension("samples.csv");
        let place = |number: u32, extension: &str| {
            self.path.join(format!("{}.cut-short-{number}.{extension}", cell.name))
        };
        let is_free = |number: &u32| place(*number, "rtproof").symlink_metadata().is_err();
        let number = (1..10_000).find(is_free).unwrap_or(10_000);
        let to = place(number, "rtproof");
        fs::rename(&record, &to)
            .with_context(|| format!("{}: cannot be moved aside", record.display()))?;
        for (path, extension) in [(html, "html"), (samples, "samples.csv")] {
            if path.symlink_metadata().is_ok() {
                fs::rename(&path, place(number, extension))
                    .with_context(|| format!("{}: cannot be moved aside", path.display()))?;
            }
        }
        Ok(())
    }
}
