//! Findings that are unknown for one reason, and what would make them known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rtproof_host::{
    facts::copied::{CopyKind, MachineCopy},
    reading::{COPIED_EMPTY, NOT_CAPTURED, NOT_COPIED, NOT_GIVEN, NOT_IN_COPY},
};

use crate::{Finding, Status};

/// Findings that are unknown for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnknownGroup {
    pub reason: UnknownReason,
    /// The reason in words; empty where each finding has its own.
    pub text: String,
    /// What would make them known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Ids of the checks.
    pub checks: Vec<String>,
}

/// Why findings are unknown, as far as several share it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum UnknownReason {
    /// The live machine refuses a user.
    NeedsRoot,
    /// A user made the capture.
    CapturedByUser,
    /// Refused to root, too, or files of a copy that may not be read.
    Refused,
    Lockdown,
    NotCopied,
    CopiedEmpty,
    /// Others of its folder are in the copy.
    NotInCopy,
    /// In none of the single files that make a machine.
    NotGiven,
    /// Not asked when the machine was captured.
    NotCaptured,
    NotThere,
    /// One of the finding alone.
    Own,
}

/// The unknown findings that are not skipped, by their reason; those with one of their own first.
pub fn unknown_groups(findings: &[Finding], copy: Option<&MachineCopy>) -> Vec<UnknownGroup> {
    let mut groups: Vec<UnknownGroup> = Vec::new();
    let is_open =
        |finding: &&Finding| finding.status == Status::Unknown && finding.skipped.is_none();
    for finding in findings.iter().filter(is_open) {
        let (mut reason, mut text) = reason_of(&finding.summary, copy.is_some());
        let is_of_files =
            |copy: &MachineCopy| matches!(copy.kind, CopyKind::Files | CopyKind::Config);
        if reason == UnknownReason::NotInCopy && copy.is_some_and(is_of_files) {
            (reason, text) = (UnknownReason::NotGiven, NOT_GIVEN.into());
        }
        match groups.iter_mut().find(|group| (group.reason, &group.text) == (reason, &text)) {
            Some(group) => group.checks.push(finding.check.clone()),
            None => groups.push(UnknownGroup {
                reason,
                text,
                next: reason.next().map(str::to_owned),
                checks: vec![finding.check.clone()],
            }),
        }
    }
    groups.sort_by_key(|group| (group.reason != UnknownReason::Own, group.reason));
    groups
}

fn reason_of(summary: &str, is_copy: bool) -> (UnknownReason, String) {
    use UnknownReason as R;
    // The path that leads a summary is no reason: /sys/kernel/security/lockdown hides nothing.
    let says = match summary.split_once(": ") {
        Some((path, reason)) if path.starts_with('/') => reason,
        _ => summary,
    };
    let has = |words: &[&str]| words.iter().any(|word| says.contains(word));
    let top = ["/proc", "/sys"]
        .map(|top| format!("{top} {NOT_COPIED}"))
        .into_iter()
        .find(|text| says.contains(text));
    if let Some(text) = top {
        return (R::NotCopied, text);
    }
    let refusals = ["EACCES", "EPERM", "Permission denied", "Operation not permitted"];
    let reason = match () {
        () if has(&["lockdown", "locked down"]) => R::Lockdown,
        () if has(&["capture it as root"]) => R::CapturedByUser,
        () if has(&["run as root", "needs root"]) && !is_copy => R::NeedsRoot,
        () if has(&refusals) => R::Refused,
        () if has(&[COPIED_EMPTY]) => R::CopiedEmpty,
        () if has(&[NOT_IN_COPY]) || (is_copy && has(&["not there"])) => R::NotInCopy,
        () if has(&[NOT_GIVEN]) => R::NotGiven,
        () if has(&[NOT_CAPTURED]) => R::NotCaptured,
        () if has(&["not there"]) => R::NotThere,
        () => R::Own,
    };
    let text = match reason {
        R::NeedsRoot => "needs root",
        R::CapturedByUser => "captured by a user who may not read it",
        R::Refused if is_copy => "the copy may not be read here",
        R::Refused => "refused by the kernel",
        R::Lockdown => "hidden by lockdown",
        R::NotCopied | R::Own => "",
        R::CopiedEmpty => "copied empty",
        R::NotInCopy => NOT_IN_COPY,
        R::NotGiven => NOT_GIVEN,
        R::NotCaptured => "not in the capture",
        R::NotThere => "not there, and nothing says why",
    };
    (reason, text.into())
}

impl UnknownReason {
    const fn next(self) -> Option<&'static str> {
        match self {
            Self::NeedsRoot => Some("sudo rtproof check"),
            Self::CapturedByUser => Some("on the machine: sudo rtproof capture machine.txt"),
            Self::NotCopied
            | Self::CopiedEmpty
            | Self::NotInCopy
            | Self::NotGiven
            | Self::NotCaptured => Some(
                "on the machine: rtproof capture machine.txt; then rtproof check --root \
                 machine.txt",
            ),
            Self::Refused | Self::Lockdown | Self::NotThere | Self::Own => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::{good, intent};

    fn of(summary: &str, is_copy: bool) -> UnknownReason {
        reason_of(summary, is_copy).0
    }

    #[test]
    fn needs_root_is_said_of_a_live_machine_alone() {
        let live = "/dev/x: refused: Permission denied (os error 13); run as root to read it";
        assert_eq!(of(live, false), UnknownReason::NeedsRoot);
        assert_eq!(of(live, true), UnknownReason::Refused);
        let captured = live.replace("run as", "capture it as");
        assert_eq!(of(&captured, false), UnknownReason::CapturedByUser);
        assert_eq!(of("/a: the root is an overlay", false), UnknownReason::Own);
        assert_eq!(of("/sys/kernel/security/lockdown: not there", false), UnknownReason::NotThere);
        assert_eq!(of("/sys/kernel/security/lockdown: not there", true), UnknownReason::NotInCopy);
    }

    #[test]
    fn one_reason_is_one_group() {
        let mut findings = crate::checks::judge_all(&good(), &intent());
        findings.truncate(4);
        let says = ["/sys/a: /sys was not copied", "mixed", "/sys/b: /sys was not copied", "other"];
        for (finding, summary) in findings.iter_mut().zip(says) {
            finding.status = Status::Unknown;
            finding.summary = summary.into();
        }
        let copy = MachineCopy {
            kind: CopyKind::Proc,
            parts: Vec::new(),
            files: None,
            empty_files: None,
            missing: Vec::new(),
            notes: Vec::new(),
        };
        let groups = unknown_groups(&findings, Some(&copy));
        let sizes: Vec<_> = groups.iter().map(|g| (g.reason, g.checks.len())).collect();
        assert_eq!(sizes, [(UnknownReason::Own, 2), (UnknownReason::NotCopied, 2)]);
        assert!(groups[1].next.is_some() && groups[0].next.is_none());
    }
}
