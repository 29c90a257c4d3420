//! Changes of what boots: GRUB's environment, EFI variables, an initial RAM disk, a kernel put in
//! place.

use super::file::of_files;
use super::kind::{
    ChangeError, ChangeProperties, Kind, Machine, MachinePart, Owner, Rank, State, StateComparison,
    Switching,
};
use crate::boot::grub;
use crate::change::{Bytes, INITRD_PROGRAMS, MODULES, STAGING};
use crate::tune::writes::TreeFile;
use crate::tune::{text, writes};
use crate::{Root, change, trusted};

// Variables of the EFI firmware that the boot loader reads.

/// Attributes of a variable of the firmware: kept without power, seen by the boot loader and by
/// the running system (UEFI, "GetVariable").
const EFI_ATTRIBUTES: [u8; 4] = [7, 0, 0, 0];

/// One variable that holds a text.
pub(super) struct EfiVariable<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a str,
}

impl EfiVariable<'_> {
    fn path(&self) -> String {
        format!("/sys/firmware/efi/efivars/{}", self.name)
    }

    /// Its bytes: the text as UTF-16 with its NUL.
    fn bytes(&self) -> Bytes {
        let units = self.value.encode_utf16().chain([0]).flat_map(u16::to_le_bytes);
        Bytes(EFI_ATTRIBUTES.into_iter().chain(units).collect())
    }

    fn put(&self, machine: &Machine<'_>, bytes: &Bytes) -> Result<(), ChangeError> {
        let path = self.path();
        if !machine.root.exists("/sys/firmware/efi/efivars") {
            let why = "no variables of the firmware here: not started by EFI, or efivarfs is not \
                       mounted";
            return Err(ChangeError::Refused { path, why: why.into() });
        }
        machine.gate.variable(&path, &bytes.0).map_err(|error| machine.refusal(&path, error))
    }
}

impl Kind for EfiVariable<'_> {
    fn target(&self) -> String {
        format!("EFI variable {}", self.name)
    }

    fn wanted(&self) -> String {
        self.value.to_owned()
    }

    fn before(&self, state: &State) -> String {
        match state {
            State::Value { bytes, .. } => text::shown(&utf16(&bytes.0)),
            _ => text::state(state),
        }
    }

    fn may_be_made(&self) -> Result<(), String> {
        change::check_name(self.name, "a variable of the firmware")
    }

    fn nature(&self) -> ChangeProperties {
        ChangeProperties {
            part: MachinePart::Loader,
            rank: Rank::BootLoader,
            pace: Switching::Later,
            is_durable: true,
        }
    }

    fn state(&self, machine: &Machine<'_>) -> Result<State, ChangeError> {
        match machine.bytes(&self.path()) {
            Ok(bytes) => Ok(State::Value { bytes, couples: Vec::new() }),
            Err(ChangeError::Missing { .. }) => Ok(State::Absent),
            Err(error) => Err(error),
        }
    }

    fn is_done(&self, _: &Machine<'_>, state: &State) -> bool {
        matches!(state, State::Value { bytes, .. } if *bytes == self.bytes())
    }

    fn write(&self, machine: &Machine<'_>, _before: &State) -> Result<(), ChangeError> {
        self.put(machine, &self.bytes())
    }

    fn side(&self, machine: &Machine<'_>, states: StateComparison<'_>) -> Owner {
        match states.current {
            State::Value { bytes, .. } if machine.is_torn(bytes, states) => Owner::Ours,
            _ => states.side(|state| self.is_done(machine, state)),
        }
    }

    fn restore(
        &self,
        machine: &Machine<'_>,
        states: StateComparison<'_>,
    ) -> Result<(), ChangeError> {
        match states.before {
            State::Value { bytes, .. } => self.put(machine, bytes),
            State::Absent => {
                let path = self.path();
                machine.gate.remove_variable(&path).map_err(|error| machine.refusal(&path, error))
            }
            other => Err(ChangeError::not_expected(other, "the state of this change")),
        }
    }
}

/// Text of a firmware variable: four bytes of attributes, then UTF-16 with its NUL.
fn utf16(bytes: &[u8]) -> String {
    let units = bytes.get(4..).unwrap_or_default().chunks_exact(2);
    let units: Vec<u16> = units.map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    String::from_utf16_lossy(&units).trim_end_matches('\0').to_owned()
}

// One variable of GRUB's environment block, the others untouched.

pub(super) struct GrubEnv<'a> {
    pub(super) path: &'a str,
    pub(super) key: &'a str,
    pub(super) value: &'a str,
}

impl Kind for GrubEnv<'_> {
    fn target(&self) -> String {
        format!("{} {}", self.path, self.key)
    }

    fn title(&self) -> String {
        self.path.to_owned()
    }

    fn wanted(&self) -> String {
        self.value.to_owned()
    }

    fn after(&self) -> String {
        format!("{}={}", self.key, self.value)
    }

    fn before(&self, state: &State) -> String {
        let State::File { bytes, .. } = state else { return text::state(state) };
        let is_it = |line: &&str| line.split_once('=').is_some_and(|(name, _)| name == self.key);
        let text = bytes.text();
        let line = text.lines().find(is_it);
        line.map_or_else(|| format!("{} not set", self.key), text::cut)
    }

    fn may_be_made(&self) -> Result<(), String> {
        change::check_file(self.path)
    }

    fn nature(&self) -> ChangeProperties {
        ChangeProperties {
            part: MachinePart::Loader,
            rank: Rank::BootLoader,
            pace: Switching::Later,
            is_durable: true,
        }
    }

    fn file(&self) -> Option<&str> {
        Some(self.path)
    }

    fn state(&self, machine: &Machine<'_>) -> Result<State, ChangeError> {
        let state = machine.state_at(&machine.grub_path(self.path)?)?;
        if let State::File { bytes, .. } = &state {
            self.block(grub::variable(bytes, self.key))?;
        }
        Ok(state)
    }

    fn is_done(&self, _: &Machine<'_>, state: &State) -> bool {
        self.value_in(state).as_deref() == Some(self.value.as_bytes())
    }

    fn write(&self, machine: &Machine<'_>, before: &State) -> Result<(), ChangeError> {
        let real = machine.grub_path(self.path)?;
        let block = match before {
            State::File { bytes, .. } => bytes.clone(),
            State::Absent => grub::empty(),
            other => return Err(machine.in_the_way(self.path, other)),
        };
        let new = self.block(grub::with_variable(&block, self.key, Some(self.value.as_bytes())))?;
        machine.write_file(&real, Some(&new), None, before)
    }

    fn side(&self, _: &Machine<'_>, states: StateComparison<'_>) -> Owner {
        let (before, current) = (states.before, states.current);
        let (was, is) = (self.value_in(before), self.value_in(current));
        match is {
            _ if *current == State::Absent && *before != State::Absent => Owner::Theirs,
            _ if is == was && !(*before == State::Absent && current != before) => Owner::Before,
            Some(is) if is == self.value.as_bytes() => Owner::Ours,
            // GRUB clears what it boots once.
            Some(is) if is.is_empty() && self.key == "next_entry" => Owner::Ours,
            None if self.key == "next_entry" => Owner::Ours,
            _ => Owner::Theirs,
        }
    }

    fn clean(&self, machine: &Machine<'_>) -> Result<(), ChangeError> {
        machine.clean(&machine.grub_path(self.path)?)
    }

    /// Restores the whole old block where nothing else has changed, else the variable alone.
    fn restore(
        &self,
        machine: &Machine<'_>,
        states: StateComparison<'_>,
    ) -> Result<(), ChangeError> {
        let StateComparison { before, current, .. } = states;
        let real = machine.grub_path(self.path)?;
        let State::File { bytes: now, .. } = current else {
            return machine.restore_file(&real, before, current);
        };
        let old = match before {
            State::File { bytes, .. } => bytes.clone(),
            _ => grub::empty(),
        };
        if grub::is_same_but_for(&old, now, self.key) {
            return machine.restore_file(&real, before, current);
        }
        let was = self.block(grub::variable(&old, self.key))?;
        let new = self.block(grub::with_variable(now, self.key, was.as_deref()))?;
        machine.write_file(&real, Some(&new), None, current)
    }
}

impl GrubEnv<'_> {
    fn value_in(&self, state: &State) -> Option<Vec<u8>> {
        let State::File { bytes, .. } = state else { return None };
        grub::variable(bytes, self.key).ok().flatten()
    }

    fn block<T>(&self, made: Result<T, grub::BlockError>) -> Result<T, ChangeError> {
        made.map_err(|error| ChangeError::Refused {
            path: self.path.into(),
            why: error.to_string(),
        })
    }
}

impl Machine<'_> {
    /// The block, wherever a link to it leads: distributions link it into the EFI partition.
    fn grub_path(&self, path: &str) -> Result<String, ChangeError> {
        self.gate.followed(path).map_err(|error| self.refusal(path, error))
    }
}

// The initial RAM disk of a kernel on trial, made by the distribution's own program: only that
// knows what the machine needs to mount its root.

/// How a program is called; `None`: it is none of [`INITRD_PROGRAMS`].
fn arguments<'a>(program: &str, out: &'a str, release: &'a str) -> Option<Vec<&'a str>> {
    match program {
        "mkinitramfs" | "mktirfs" => Some(vec!["-o", out, release]),
        "mkinitcpio" => Some(vec!["-k", release, "-g", out]),
        "dracut" => Some(vec!["--force", out, release]),
        _ => None,
    }
}

/// One initial RAM disk.
pub(super) struct Initrd<'a> {
    pub(super) path: &'a str,
    pub(super) release: &'a str,
    pub(super) program: &'a str,
}

impl Kind for Initrd<'_> {
    fn target(&self) -> String {
        self.path.to_owned()
    }

    fn line(&self) -> String {
        format!("{}: {}", self.path, self.wanted())
    }

    fn wanted(&self) -> String {
        format!("made by {} for {}", self.program, self.release)
    }

    fn texts(&self) -> Vec<&str> {
        vec![self.path]
    }

    fn may_be_made(&self) -> Result<(), String> {
        change::placed(self.path)?;
        match change::is_release(self.release) && INITRD_PROGRAMS.contains(&self.program) {
            true => Ok(()),
            false => Err(format!("{} {}: no program and release", self.program, self.release)),
        }
    }

    fn nature(&self) -> ChangeProperties {
        of_files(self.path, Switching::Later)
    }

    fn file(&self) -> Option<&str> {
        Some(self.path)
    }

    fn state(&self, machine: &Machine<'_>) -> Result<State, ChangeError> {
        machine.tree(self.path)
    }

    fn is_done(&self, _: &Machine<'_>, state: &State) -> bool {
        matches!(state, State::Tree { files } if files.len() == 1 && files[0].bytes > 0)
    }

    fn write(&self, machine: &Machine<'_>, before: &State) -> Result<(), ChangeError> {
        if !machine.root.is_live() {
            let what = format!("{}: {} makes it", self.path, self.program);
            return Err(ChangeError::NotLive { what });
        }
        let staged = format!("{STAGING}/initrd");
        self.make(&staged).map_err(|why| ChangeError::Refused { path: self.path.into(), why })?;
        machine.place(&staged, self.path, before)
    }

    fn side(&self, machine: &Machine<'_>, states: StateComparison<'_>) -> Owner {
        side(machine, self.path, states, |state| self.is_done(machine, state))
    }

    fn clean(&self, machine: &Machine<'_>) -> Result<(), ChangeError> {
        machine.gate.clean_tree(self.path).map_err(|error| machine.refusal(self.path, error))
    }

    fn restore(
        &self,
        machine: &Machine<'_>,
        states: StateComparison<'_>,
    ) -> Result<(), ChangeError> {
        machine.remove_placed(self.path, states)
    }
}

impl Initrd<'_> {
    /// Makes it in a folder of rtproof's own: a program that outlives us writes nowhere else.
    fn make(&self, to: &str) -> Result<(), String> {
        let name = self.program;
        let Some(arguments) = arguments(name, to, self.release) else {
            return Err(format!("{name}: not one of {}", INITRD_PROGRAMS.join(", ")));
        };
        let mut command = trusted::command(name).map_err(|error| format!("{name}: {error}"))?;
        trusted::succeed(command.args(arguments)).map(drop)
    }
}

// A file or folder that rtproof has prepared, put in place whole: the image of a kernel on trial,
// its modules. Undo removes what is still as it was put there.

/// Files by which a package that has a kernel's modules is known: one of its headers has neither.
const OF_MODULES: [&str; 2] = ["/kernel", "/modules.builtin"];

/// Where dpkg has the lists of what its packages hold.
const DPKG: &str = "/var/lib/dpkg/info";

/// What is put where.
pub(super) struct PlacedChange<'a> {
    pub(super) path: &'a str,
    pub(super) from: &'a str,
    pub(super) digest: &'a str,
    pub(super) files: usize,
    pub(super) bytes: u64,
}

impl Kind for PlacedChange<'_> {
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
        change::placed(self.path)?;
        match self.from.strip_prefix(STAGING).and_then(|rest| rest.strip_prefix('/')) {
            Some(name) if change::is_release(name) => Ok(()),
            _ => Err(format!("{}: expected a name in {STAGING}", self.from)),
        }
    }

    fn nature(&self) -> ChangeProperties {
        of_files(self.path, Switching::Later)
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
            files => writes::digest(files) == self.digest,
        }
    }

    fn write(&self, machine: &Machine<'_>, before: &State) -> Result<(), ChangeError> {
        machine.place(self.from, self.path, before)
    }

    fn side(&self, machine: &Machine<'_>, states: StateComparison<'_>) -> Owner {
        side(machine, self.path, states, |state| self.is_done(machine, state))
    }

    fn is_partly_ours(&self, states: StateComparison<'_>) -> bool {
        is_partly_ours(states)
    }

    fn clean(&self, machine: &Machine<'_>) -> Result<(), ChangeError> {
        machine.gate.clean_tree(self.path).map_err(|error| machine.refusal(self.path, error))
    }

    fn restore(
        &self,
        machine: &Machine<'_>,
        states: StateComparison<'_>,
    ) -> Result<(), ChangeError> {
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
        machine.remove_placed(self.path, states)
    }
}

/// Owner: ours if nothing was added and nothing belongs to others by now. What was removed of
/// it makes it no other's.
pub(super) fn side(
    machine: &Machine<'_>,
    path: &str,
    states: StateComparison<'_>,
    is_done: impl Fn(&State) -> bool,
) -> Owner {
    let State::Tree { files: now } = states.current else {
        return states.side(is_done);
    };
    Owner::ours_if(
        *states.before == State::Absent
            && match states.after {
                Some(State::Tree { files }) => is_within(now, files),
                _ => is_done(states.current),
            }
            && !is_of_package(machine.root, path),
    )
}

/// Whether others have added to it, or changed a part of it.
pub(super) fn is_partly_ours(states: StateComparison<'_>) -> bool {
    match (states.before, states.after, states.current) {
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
    fn tree(&self, path: &str) -> Result<State, ChangeError> {
        let files = self.gate.tree(path).map_err(|error| self.refusal(path, error))?;
        Ok(files.map_or(State::Absent, |files| State::Tree { files }))
    }

    /// Puts what is prepared where nothing is.
    fn place(&self, from: &str, to: &str, before: &State) -> Result<(), ChangeError> {
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
    fn remove_placed(&self, path: &str, states: StateComparison<'_>) -> Result<(), ChangeError> {
        let removed = match states.after {
            _ if *states.before != State::Absent => {
                return Err(ChangeError::not_expected(states.before, "the state of this change"));
            }
            Some(State::Tree { files }) if is_partly_ours(states) => {
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

/// The modules of a kernel: what is prepared is in [`crate::change::STAGING`].
#[cfg(test)]
pub(super) fn examples() -> Vec<change::Change> {
    use crate::change::Change;

    let place = |path: &str, from: &str, files: &[TreeFile]| Change::Placed {
        path: path.into(),
        from: format!("{STAGING}/{from}"),
        digest: writes::digest(files),
        files: writes::tree_count(files),
        bytes: writes::tree_bytes(files),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_is_called_with_its_file_and_release() {
        for program in INITRD_PROGRAMS {
            let arguments = arguments(program, "/x/initrd", "6.12").expect(program);
            assert!(arguments.contains(&"/x/initrd") && arguments.contains(&"6.12"), "{program}");
        }
        assert_eq!(arguments("sh", "/x", "6.12"), None);
    }
}
