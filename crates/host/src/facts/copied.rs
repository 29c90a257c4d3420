//! What kind of copy of a machine was read, and what it lacks: said once, above all unknowns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rtproof_stats::samples::grouped;

use crate::Root;
use crate::reading::COPIED_EMPTY;

/// A copy of a machine that `rtproof capture` did not make on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineCopy {
    pub kind: CopyKind,
    /// What was given, where it was no folder: `uname -a`, `/proc/interrupts` ...
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
    /// Files of /proc and /sys, counted where one that was read is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// Those of them without the bytes that they had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_files: Option<u64>,
    /// Of /proc and /sys, what is not in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// What is wrong with it, in sentences for the head of an answer.
    pub notes: Vec<String>,
}

/// What was given in place of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CopyKind {
    Folder,
    /// The folder /proc of a machine alone.
    Proc,
    /// The folder /sys of a machine alone.
    Sys,
    /// The build configuration of a kernel alone.
    Config,
    /// Texts, or an archive of them.
    Files,
}

impl MachineCopy {
    /// Of a root whose facts were read; `None`: a live machine, or a capture made on one.
    /// `config_is_part`: its kernel configuration leaves options out.
    pub(crate) fn of(root: &Root, config_is_part: bool) -> Option<Self> {
        if root.is_whole() {
            return None;
        }
        let given = root.given().unwrap_or_default();
        let mut lines = given.lines();
        let kind = match lines.next() {
            Some("proc") => CopyKind::Proc,
            Some("sys") => CopyKind::Sys,
            Some("config") => CopyKind::Config,
            Some("files") => CopyKind::Files,
            _ => CopyKind::Folder,
        };
        let (cut, parts): (Vec<&str>, Vec<&str>) =
            lines.partition(|line| line.starts_with(CUT_MARK));
        let tops = ["/proc", "/sys"].into_iter().filter(|_| kind == CopyKind::Folder);
        let missing: Vec<String> =
            tops.filter(|top| !root.has_folder(top)).map(str::to_owned).collect();
        let hollow = root.hollow_files();
        let mut notes = Vec::new();
        notes.extend(match kind {
            CopyKind::Folder | CopyKind::Files => None,
            CopyKind::Config if config_is_part => {
                Some("this is a part of a kernel's build configuration alone".to_owned())
            }
            CopyKind::Config => Some("this is a kernel's build configuration alone".to_owned()),
            CopyKind::Proc => Some("this is a /proc alone: /sys and all else is unknown".into()),
            CopyKind::Sys => Some("this is a /sys alone: /proc and all else is unknown".into()),
        });
        if !parts.is_empty() && kind == CopyKind::Files {
            notes.push(format!("made from {}: all else is unknown", parts.join(", ")));
        }
        notes.extend(hollow.map(|(files, empty)| {
            let (_, next) = COPIED_EMPTY.split_once(": ").unwrap_or_default();
            let (empty, files) = (grouped(empty), grouped(files));
            format!("hollow copy: {empty} of {files} files are empty; {next}")
        }));
        notes.extend(cut.iter().filter_map(|line| line.strip_prefix(CUT_MARK)).map(str::to_owned));
        Some(Self {
            kind,
            parts: parts.into_iter().map(str::to_owned).collect(),
            files: hollow.map(|(files, _)| files),
            empty_files: hollow.map(|(_, empty)| empty),
            missing,
            notes,
        })
    }
}

/// Begins a line of what was given that says what was left out.
pub(crate) const CUT_MARK: &str = "cut: ";

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing::Tree;
    use crate::{Facts, capture::form::Capture};

    fn copy(root: &Root) -> MachineCopy {
        Facts::read(root).copy.unwrap()
    }

    #[test]
    fn a_hollow_copy_is_counted_once() {
        let tree = Tree::new(&[
            ("proc/cmdline", ""),
            ("proc/cpuinfo", ""),
            ("proc/modules", ""),
            ("proc/loadavg", "0.1 0.1 0.1 1/2 3\n"),
            ("sys/devices/system/cpu/online", ""),
            ("sys/devices/x/uevent", ""),
        ]);
        let hollow = copy(&tree.root());
        // What a live kernel may leave empty is not counted.
        assert_eq!((hollow.files, hollow.empty_files), (Some(6), Some(3)));
        assert!(hollow.notes.iter().any(|note| note.contains("3 of 6 files are empty")));
        let capture = Capture::take(&tree.root());
        assert!(copy(&Root::captured(capture)).empty_files.is_some(), "its capture says so, too");
        tree.write("proc/cmdline", "quiet\n");
        tree.write("proc/cpuinfo", "processor : 0\n");
        tree.write("sys/devices/system/cpu/online", "0\n");
        assert_eq!(copy(&tree.root()).empty_files, None);
    }

    #[test]
    fn a_proc_or_a_sys_alone_is_read_as_that() {
        let proc = Tree::new(&[
            ("version", "Linux version 5.4.1 (a@b) (gcc) #1 SMP PREEMPT Mon\n"),
            ("sys/vm/swappiness", "60\n"),
        ]);
        let facts = Facts::read(&proc.root());
        assert_eq!(facts.kernel.release.value().unwrap(), "5.4.1");
        assert_eq!(facts.copy.as_ref().unwrap().kind, CopyKind::Proc);
        let why = facts.clock.source.why_unknown().unwrap();
        assert!(why.contains("/sys was not copied"), "{why}");
        assert_eq!(proc.root().list_dir("/").value().unwrap(), &["proc"]);
        let links = [("/proc/version", "abs"), ("../version", "up")];
        for (target, name) in links {
            std::os::unix::fs::symlink(target, proc.path().join(name)).unwrap();
            let read = proc.root().read_text(&format!("/proc/{name}"));
            assert_eq!(read.value().is_some(), name == "abs", "{name}: `..` leaves /proc");
        }
        let sys = Tree::new(&[("devices/system/cpu/online", "0-3\n")]);
        let facts = Facts::read(&sys.root());
        assert_eq!(facts.cpus.online.value().unwrap().len(), 4);
        assert_eq!(facts.copy.unwrap().kind, CopyKind::Sys);
        // A machine's top may hold any name beside its proc.
        let top = Tree::new(&[("proc/cpuinfo", "processor : 0\n"), ("version", "1\n")]);
        let top = copy(&top.root());
        assert_eq!((top.kind, top.missing), (CopyKind::Folder, vec!["/sys".to_owned()]));
    }

    #[test]
    fn a_file_that_its_neighbours_lack_may_have_been_on_the_machine() {
        let folder = "sys/devices/system/cpu/cpu0/cpufreq";
        let tree = Tree::new(&[
            ("sys/devices/system/cpu/online", "0\n"),
            (&format!("{folder}/scaling_governor"), "performance\n"),
        ]);
        let freq = |root: &Root| Facts::read(root).cpus.cpus[0].freq.clone();
        let why = |root: &Root| freq(root).min_hz.why_unknown();
        assert_eq!(why(&tree.root()).as_deref(), Some("not in the copy"));
        let capture = Capture::take(&tree.root());
        assert_eq!(freq(&Root::captured(capture)), freq(&tree.root()));
        fs::remove_file(tree.path().join(folder).join("scaling_governor")).unwrap();
        assert!(freq(&tree.root()).min_hz.is_absent(), "a folder without files is no neighbour");
        let none = Root::captured(Capture::of_files([]));
        assert!(copy(&none).notes.is_empty());
    }
}
