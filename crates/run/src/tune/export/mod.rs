//! A plan in the words of those who manage machines otherwise: tuned, Ansible, systemd, kernel
//! configuration, Yocto, Buildroot.
//!
//! Pure: from a plan to files. What a format cannot say is never dropped: it is in the list of the
//! answer and in the NOTES.md of the export.

mod ansible;
mod boot;
mod buildroot;
mod glob;
mod kconfig;
mod layout;
mod notes;
mod readback;
mod script;
mod systemd;
mod text;
mod tree;
mod tuned;
mod yocto;

use std::collections::BTreeMap;

use rtproof_host::{
    CpuList,
    tune::{Change, State},
};
use rtproof_judge::plan::Plan;

/// Every format. The list is the order of `--help`.
pub const FORMATS: &[&dyn Format] = &[
    &tuned::Tuned,
    &ansible::Ansible,
    &systemd::Systemd,
    &kconfig::KernelConfig,
    &yocto::Yocto,
    &buildroot::Buildroot,
];

/// One format.
pub trait Format: Sync {
    /// As `--format` takes it.
    fn id(&self) -> &'static str;

    /// What it gives, in one line.
    fn title(&self) -> &'static str;

    /// What to do with the files, for NOTES.md; Markdown.
    fn usage(&self) -> &'static str;

    /// Translates a plan without conflicts.
    fn write(&self, source: &Source<'_>) -> Exported;
}

/// A plan, and what an export says about where it comes from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The machine in a few words, e.g. `Linux 6.12.0-rt x86_64`.
    pub machine: &'a str,
    /// CPUs that the plan keeps free for real-time work.
    pub realtime: &'a CpuList,
    /// The other CPUs.
    pub housekeeping: &'a CpuList,
    /// What was there before, by [`Change::target`], where it is known.
    pub before: &'a BTreeMap<String, State>,
}

impl Source<'_> {
    /// What was there before a change, where it is known.
    fn before(&self, change: &Change) -> Option<&State> {
        self.before.get(&change.target())
    }
}

/// One file of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutFile {
    /// Path in the folder of the export, without a slash in front.
    pub path: String,
    /// The whole content.
    pub content: String,
    /// Permissions.
    pub mode: u32,
}

impl OutFile {
    fn new(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self { path: path.into(), content: content.into(), mode: 0o644 }
    }

    fn program(path: impl Into<String>, content: impl Into<String>) -> Self {
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

/// Why there is no export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportError {
    /// No such format.
    UnknownFormat {
        /// What was asked.
        asked: String,
    },
    /// The plan contradicts itself.
    Conflicts {
        /// What is contested.
        targets: Vec<String>,
    },
}

impl std::fmt::Display for ExportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownFormat { asked } => {
                let ids: Vec<&str> = FORMATS.iter().map(|format| format.id()).collect();
                write!(f, "--format {asked}: there is {}", ids.join(", "))
            }
            Self::Conflicts { targets } => write!(
                f,
                "{}: the plan wants two different things of it; `rtproof tune plan` shows which \
                 checks, leave one of them out",
                targets.join(", ")
            ),
        }
    }
}

impl std::error::Error for ExportError {}

/// The format of that name.
///
/// # Errors
/// When there is none; the text lists what there is.
pub fn format(id: &str) -> Result<&'static dyn Format, ExportError> {
    let found = FORMATS.iter().copied().find(|format| format.id() == id);
    found.ok_or_else(|| ExportError::UnknownFormat { asked: id.into() })
}

/// Translates a plan, and adds NOTES.md: how to use it, and what is not in it.
///
/// # Errors
/// When the plan contradicts itself.
pub fn export(format: &dyn Format, source: &Source<'_>) -> Result<Exported, ExportError> {
    if !source.plan.conflicts.is_empty() {
        let conflicts = &source.plan.conflicts;
        let targets = conflicts.iter().map(|conflict| conflict.target.clone()).collect();
        return Err(ExportError::Conflicts { targets });
    }
    let mut exported = format.write(source);
    exported.files.push(notes::write(format, source, &exported.missed));
    Ok(exported)
}

#[cfg(test)]
mod tests;
