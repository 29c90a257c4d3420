//! Cells while they are measured: a progress line each, or rows.

use std::{io::Write, path::PathBuf};

use rtproof_judge::{Report, units};
use rtproof_record::Run;
use rtproof_results::measure::{
    index::Index,
    plan::{Cell, Plan},
};
use rtproof_run::{
    measure::{folder::Folder, run::Events},
    prove::{Observer, observer::Silent, output::Output},
};

use super::{progress::Progress, rows::Rows};
use crate::{answers, pages, print::Text};

#[derive(Debug)]
pub(crate) struct Cells {
    is_rows: bool,
    text: Text,
    folder: PathBuf,
    now: Now,
}

/// What shows the cell that is measured.
#[derive(Debug)]
pub(crate) enum Now {
    Nothing(Silent),
    Bar(Progress),
    Rows(Rows),
}

impl Now {
    /// Of one run alone.
    pub(crate) fn of_one(duration_ns: u64, is_rows: bool) -> Self {
        if is_rows { Self::Rows(Rows::new()) } else { Self::Bar(Progress::new(duration_ns)) }
    }

    /// What observes the run.
    pub(crate) fn observer(&mut self) -> &mut dyn Observer {
        match self {
            Self::Nothing(silent) => silent,
            Self::Bar(bar) => bar,
            Self::Rows(rows) => rows,
        }
    }

    /// The sums of the rows, if there are some.
    pub(crate) fn end(self) {
        if let Self::Rows(rows) = self {
            rows.end();
        }
    }
}

impl Cells {
    /// Rows instead of a progress line, or not.
    pub(crate) fn new(is_rows: bool, text: Text, folder: &Folder) -> Self {
        Self { is_rows, text, folder: folder.path().to_owned(), now: Now::Nothing(Silent) }
    }
}

impl Events for Cells {
    /// On stdout where its rows follow, else on stderr.
    fn begin(&mut self, plan: &Plan, cell: &Cell, left_ns: u64) -> anyhow::Result<()> {
        let text = format!(
            "cell {} of {}: {}; about {} left",
            cell.number,
            plan.cells.len(),
            cell.title(),
            units::duration(left_ns.div_ceil(1_000_000_000) * 1_000_000_000)
        );
        if self.is_rows {
            self.text.print(|to| writeln!(to, "{text}"))?;
        } else if !crate::manners::is_quiet() {
            // Progress is a courtesy.
            let _ = crate::stderr::line(&text);
        }
        Ok(())
    }

    fn observer(&mut self, plan: &Plan, cell: &Cell, after_ns: u64) -> &mut dyn Observer {
        let label = format!("{} of {}  ", cell.number, plan.cells.len());
        self.now = match self.is_rows {
            true => Now::Rows(Rows::new()),
            false => Now::Bar(Progress::of_one(cell.duration_ns, label, after_ns)),
        };
        self.now.observer()
    }

    fn end(&mut self) {
        std::mem::replace(&mut self.now, Now::Nothing(Silent)).end();
    }

    fn sealed(&mut self, output: &Output, run: &Run, report: &Report) -> anyhow::Result<()> {
        pages::write_html(&output.html, run, report, None, None)
    }

    fn page(&self, index: &Index) -> String {
        rtproof_report::html::measure::page(index, &answers::measure::answer(index, &self.folder))
    }
}
