//! A file or folder that rtproof has prepared, put in place whole: the image of a kernel on trial,
//! its modules. Undo removes what is still as it was put there.

use crate::{
    Root,
    change::places::{MODULES, STAGING},
    tune::{
        kind::{ChangeError, Kind, Machine, Nature, Pace, Side, State, Three, places, text},
        kinds::file::of_files,
        tree::{self, TreeFile},
    },
};

/// Files by which a package that has a kernel's modules is known: one of its headers has neither.
const OF_MODULES: [&str; 2] = ["/kernel", "/modules.builtin"];
/// Where dpkg has the lists of what its packages hold.
const DPKG: &str = "/var/lib/dpkg/info";

/// What is put where.
pub(super) struct Placed<'a> {
    pub(super) path: &'a str,
    pub(super) from: &'a str,
    pub(super) digest: &'a str,
    pub(super) files: usize,
    pub(super) bytes: u64,
}

impl Kind for Placed<'_> {
    fn target(&self) -> String {
        self.path.to_owned()
    }

    fn line(&self) -> String {
        format!("{}: {}", self.path, self.wanted())
    }

    fn wanted(&self) -> String {
        text::of_tree(self.path.starts_with(MODULES), self.files, self.bytes)
    }

    fn texts(&self) -> Vec<&str> {
        vec![self.path]
    }

    fn may_be_made(&self) -> Result<(), String> {
        places::placed(self.path)?;
        match self.from.strip_prefix(STAGING).and_then(|rest| rest.strip_prefix('/')) {
            Some(name) if places::is_release(name) => Ok(()),
            _ => Err(format!("{}: expected a name in {STAGING}", self.from)),
        }
    }

    fn nature(&self) -> Nature {
        of_files(self.path, Pace::Later)
    }

    fn file(&self) -> Option<&str> {
        Some(self.path)
    }

    fn state(&self, machine: &Machine<'_>) -> Result<State, ChangeError> {
        machine.tree(self.path)
    }

    fn is_done(&self, _: &Machine<'_>, state: &State) -> bool {
        let State::Tree { files } = state else { return false };
        match files.as_slice() {
            // A FAT has permissions and times of its own.
            [file] if !file.is_folder() => file.bytes == self.bytes,
            files => tree::digest(files) == self.digest,
        }
    }

    fn write(&self, machine: &Machine<'_>, before: &State) -> Result<(), ChangeError> {
        machine.place(self.from, self.path, before)
    }

    fn side(&self, machine: &Machine<'_>, three: Three<'_>) -> Side {
        side(machine, self.path, three, |state| self.is_done(machine, state))
    }

    fn is_partly_ours(&self, three: Three<'_>) -> bool {
        is_partly_ours(three)
    }

    fn clean(&self, machine: &Machine<'_>) -> Result<(), ChangeError> {
        machine.gate.clean_tree(self.path).map_err(|error| machine.refusal(self.path, error))
    }

    fn restore(&self, machine: &Machine<'_>, three: Three<'_>) -> Result<(), ChangeError> {
        let release = self.path.strip_prefix(MODULES);
        let running = machine.root.trimmed("/proc/sys/kernel/osrelease");
        if release.is_some() && release == running.value().map(String::as_str) {
            return Err(ChangeError::Refused {
                path: self.path.into(),
                why: "modules of the kernel that runs: they stay while it does; reboot into the \
                      other kernel, then rtproof tune undo"
                    .into(),
            });
        }
        machine.remove_placed(self.path, three)
    }
}

/// Whose it is: ours, where nothing was added and nothing is another's by now. What was removed of
/// it makes it no other's.
pub(super) fn side(
    machine: &Machine<'_>,
    path: &str,
    three: Three<'_>,
    is_done: impl Fn(&State) -> bool,
) -> Side {
    let State::Tree { files: now } = three.current else {
        return three.side(is_done);
    };
    Side::ours_if(
        *three.before == State::Absent
            && match three.after {
                Some(State::Tree { files }) => is_within(now, files),
                _ => is_done(three.current),
            }
            && !is_of_package(machine.root, path),
    )
}

/// Whether others have added to it, or changed a part of it.
pub(super) fn is_partly_ours(three: Three<'_>) -> bool {
    match (three.before, three.after, three.current) {
        (State::Absent, Some(State::Tree { files }), State::Tree { files: now }) => {
            now.len() > 1 && !is_within(now, files)
        }
        _ => false,
    }
}

/// Whether each of these files is one of those.
fn is_within(some: &[TreeFile], all: &[TreeFile]) -> bool {
    some.iter().all(|file| all.binary_search(file).is_ok())
}

/// Whether a package has brought the same modules since: they are its own from then on.
fn is_of_package(root: &Root, path: &str) -> bool {
    if !path.starts_with(MODULES) {
        return false;
    }
    let names = root.list_dir(DPKG).into_value().unwrap_or_default();
    let lists = names.iter().filter(|name| name.ends_with(".list"));
    lists.map(|name| root.read_text(&format!("{DPKG}/{name}"))).any(|list| {
        let is_it = |line: &str| {
            let line = line.strip_prefix("/usr").unwrap_or(line);
            line.strip_prefix(path).is_some_and(|rest| OF_MODULES.contains(&rest))
        };
        list.value().is_some_and(|text| text.lines().any(is_it))
    })
}

impl Machine<'_> {
    /// What is at a path, with all that is in it.
    pub(super) fn tree(&self, path: &str) -> Result<State, ChangeError> {
        let files = self.gate.tree(path).map_err(|error| self.refusal(path, error))?;
        Ok(files.map_or(State::Absent, |files| State::Tree { files }))
    }

    /// Puts what is prepared where nothing is.
    pub(super) fn place(&self, from: &str, to: &str, before: &State) -> Result<(), ChangeError> {
        if *before != State::Absent {
            return Err(ChangeError::Refused {
                path: to.into(),
                why:
                    "there already; rtproof replaces no files of a kernel: remove it, or undo the \
                      trial that made it (rtproof tune status)"
                        .into(),
            });
        }
        self.gate.place(from, to).map_err(|error| self.refusal(to, error))
    }

    /// Removes what was put there; of what others have added to, what is still as it was.
    pub(super) fn remove_placed(&self, path: &str, three: Three<'_>) -> Result<(), ChangeError> {
        let removed = match three.after {
            _ if *three.before != State::Absent => {
                return Err(ChangeError::not_expected(three.before, "the state of this change"));
            }
            Some(State::Tree { files }) if is_partly_ours(three) => {
                match is_of_package(self.root, path) {
                    true => Ok(()),
                    false => self.gate.remove_of_tree(path, files),
                }
            }
            _ => self.gate.remove_tree(path),
        };
        removed.map_err(|error| self.refusal(path, error))
    }
}

/// The modules of a kernel: what is prepared is in [`crate::change::places::STAGING`].
#[cfg(test)]
pub(super) fn examples() -> Vec<crate::change::Change> {
    use crate::change::Change;

    let place = |path: &str, from: &str, files: &[TreeFile]| Change::Placed {
        path: path.into(),
        from: format!("{STAGING}/{from}"),
        digest: tree::digest(files),
        files: tree::count(files),
        bytes: tree::bytes(files),
    };
    let folder =
        |path: &str| TreeFile { path: path.into(), mode: 0o40_755, bytes: 0, modified_ns: 0 };
    let file = |path: &str, bytes| TreeFile {
        path: path.into(),
        mode: 0o100_644,
        bytes,
        modified_ns: 1_600_000_000_123_456_789,
    };
    let modules = [folder(""), folder("kernel"), file("kernel/x.ko", 4), file("modules.dep", 3)];
    vec![
        Change::Folder { path: "/boot/rtproof".into() },
        place("/boot/rtproof/vmlinuz-6.12-x", "vmlinuz", &[file("", 6)]),
        place("/lib/modules/6.12-x", "modules", &modules),
    ]
}
