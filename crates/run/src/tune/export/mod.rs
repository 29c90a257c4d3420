//! A plan in the words of those who manage machines otherwise: tuned, Ansible, systemd, kernel
//! configuration, Yocto, Buildroot.
//!
//! Pure: from a plan to files. What a format cannot say is never dropped: it is in the list of the
//! answer and in the NOTES.md of the export.

mod ansible;
mod boot;
mod buildroot;
mod format;
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

pub use self::format::{Exported, Format, Missed, OutFile, Source};

/// Every format. The list is the order of `--help`.
pub const FORMATS: &[Format] = &[
    tuned::TUNED,
    ansible::ANSIBLE,
    systemd::SYSTEMD,
    kconfig::KCONFIG,
    yocto::YOCTO,
    buildroot::BUILDROOT,
];

/// Why there is no export.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// No such format: what was requested, and what there is.
    #[error("--format {0}: there is {1}")]
    UnknownFormat(String, String),
    /// The plan contradicts itself: what is contested.
    #[error(
        "{0}: the plan wants two different things of it; `rtproof tune plan` shows which checks, \
         leave one of them out"
    )]
    Conflicts(String),
}

/// The format of that name.
///
/// # Errors
/// When there is none; the text lists what there is.
pub fn format(id: &str) -> Result<&'static Format, ExportError> {
    let ids = || FORMATS.iter().map(|format| format.id).collect::<Vec<_>>().join(", ");
    let found = FORMATS.iter().find(|format| format.id == id);
    found.ok_or_else(|| ExportError::UnknownFormat(id.into(), ids()))
}

/// Translates a plan, and adds NOTES.md: how to use it, and what is not in it.
///
/// # Errors
/// When the plan contradicts itself.
pub fn export(format: &Format, source: &Source<'_>) -> Result<Exported, ExportError> {
    let conflicts = source.plan.conflicts.iter();
    let targets: Vec<&str> = conflicts.map(|conflict| conflict.target.as_str()).collect();
    if !targets.is_empty() {
        return Err(ExportError::Conflicts(targets.join(", ")));
    }
    let mut exported = (format.write)(source);
    exported.files.push(notes::write(format, source, &exported.missed));
    Ok(exported)
}

#[cfg(test)]
mod tests;
