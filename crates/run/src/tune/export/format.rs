//! What a format is, what it translates and what it gives.

use std::collections::BTreeMap;

use rtproof_host::{
    CpuList,
    tune::{Change, State},
};
use rtproof_judge::plan::{BuildOption, Plan};

/// A format of `tune export`.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// As `--format` takes it.
    pub id: &'static str,
    /// What it gives, in one line.
    pub title: &'static str,
    /// What to do with the files, for NOTES.md; Markdown.
    pub(super) usage: &'static str,
    /// Translates a plan without conflicts.
    pub(super) write: fn(&Source<'_>) -> Exported,
}

/// A plan, and what an export says about where it comes from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    pub plan: &'a Plan,
    /// The machine in a few words, e.g. `Linux 6.12.0-rt x86_64`.
    pub machine: &'a str,
    /// CPUs that the plan keeps free for real-time work.
    pub realtime: &'a CpuList,
    pub housekeeping: &'a CpuList,
    /// What the kernel's build lacks; `None`: that is not known.
    pub build: Option<&'a [BuildOption]>,
    /// What was there before, by [`Change::target`], where it is known.
    pub before: &'a BTreeMap<String, State>,
}

impl Source<'_> {
    /// What was there before a change, where it is known.
    pub(super) fn before(&self, change: &Change) -> Option<&State> {
        self.before.get(&change.target())
    }
}

/// One file of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutFile {
    /// Path in the folder of the export, without a slash in front.
    pub path: String,
    pub content: String,
    pub mode: u32,
}

impl OutFile {
    pub(super) fn new(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self { path: path.into(), content: content.into(), mode: 0o644 }
    }

    pub(super) fn program(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self { path: path.into(), content: content.into(), mode: 0o755 }
    }
}

/// Something of the plan that a format cannot say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missed {
    /// What, as a plan names it.
    pub what: String,
    /// Why not, and what to do instead.
    pub why: String,
}

/// What an export gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Files, each path once.
    pub files: Vec<OutFile>,
    /// What is not in them.
    pub missed: Vec<Missed>,
}
