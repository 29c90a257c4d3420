//! Files, folders and links under /etc, /boot and /run, GRUB's environment block, and variables of
//! the firmware.

use super::{
    gate::Wanted,
    grubenv,
    machine::Machine,
    side::{Side, Three},
    state::{Bytes, State},
    trouble::Trouble,
};

/// Permissions of a new file.
const NEW_FILE: u32 = 0o644;
/// Permissions of a new folder.
const NEW_FOLDER: u32 = 0o755;
/// Attributes of a variable of the firmware: kept without power, seen by the boot loader and by
/// the running system (UEFI, "GetVariable").
const EFI_ATTRIBUTES: [u8; 4] = [7, 0, 0, 0];

/// Where a variable of the firmware is.
pub(super) fn efi_path(name: &str) -> String {
    format!("/sys/firmware/efi/efivars/{name}")
}

/// Bytes of a variable that holds a text.
pub(super) fn efi_bytes(text: &str) -> Bytes {
    let units = text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes);
    Bytes(EFI_ATTRIBUTES.into_iter().chain(units).collect())
}

/// Whether a file is as wanted.
pub(super) fn is_done(content: Option<&Bytes>, wanted_mode: Option<u32>, state: &State) -> bool {
    match (content, state) {
        (None, State::Absent) => true,
        (Some(content), State::File { bytes, mode, .. }) => {
            bytes == content && wanted_mode.is_none_or(|wanted| wanted == *mode)
        }
        _ => false,
    }
}

/// Whose file is there.
pub(super) fn side(content: Option<&Bytes>, mode: Option<u32>, three: Three<'_>) -> Side {
    if is_same(three.before, three.current) {
        return Side::Before;
    }
    let is_ours = match three.after {
        Some(after) => is_same(after, three.current),
        None => is_done(content, mode, three.current),
    };
    if is_ours { Side::Ours } else { Side::Theirs }
}

/// Whether two files are the same but for their times and labels, which others may refresh.
fn is_same(a: &State, b: &State) -> bool {
    match (a, b) {
        (
            State::File { bytes: a, mode: ma, uid: ua, gid: ga, .. },
            State::File { bytes: b, mode: mb, uid: ub, gid: gb, .. },
        ) => (a, ma, ua, ga) == (b, mb, ub, gb),
        _ => a == b,
    }
}

/// Whether a variable of the block is as before, ours, or somebody else's.
pub(super) fn grub_side(key: &str, value: &str, before: &State, current: &State) -> Side {
    let get = |state: &State| match state {
        State::File { bytes, .. } => grubenv::get(bytes, key).ok().flatten(),
        _ => None,
    };
    let (was, is) = (get(before), get(current));
    match is {
        _ if matches!(current, State::Absent) && !matches!(before, State::Absent) => Side::Theirs,
        _ if is == was && !(matches!(before, State::Absent) && current != before) => Side::Before,
        Some(is) if is == value.as_bytes() => Side::Ours,
        // GRUB clears what it boots once.
        Some(is) if is.is_empty() && key == "next_entry" => Side::Ours,
        None if key == "next_entry" => Side::Ours,
        _ => Side::Theirs,
    }
}

impl Machine<'_> {
    /// What is under a path, links not followed.
    pub(super) fn look(&self, path: &str) -> Result<State, Trouble> {
        self.gate.look(path).map_err(|error| self.refusal(path, error))
    }

    pub(super) fn refusal(&self, path: &str, error: std::io::Error) -> Trouble {
        Trouble::refused(self.root, path, error)
    }

    pub(super) fn write_file(
        &self,
        path: &str,
        content: Option<&Bytes>,
        mode: Option<u32>,
        before: &State,
    ) -> Result<(), Trouble> {
        let Some(content) = content else { return self.remove_entry(path, before) };
        let mut wanted = Wanted {
            bytes: &content.0,
            mode: mode.unwrap_or(NEW_FILE),
            mode_may_differ: mode.is_none(),
            owner: None,
            modified_ns: None,
            attributes: &[],
            sealed: false,
        };
        match before {
            State::Absent | State::Link { .. } => {}
            State::File { mode: old, uid, gid, attributes, .. } => {
                wanted.mode = mode.unwrap_or(*old);
                wanted.owner = Some((*uid, *gid));
                wanted.attributes = attributes;
            }
            other => return Err(self.in_the_way(path, other)),
        }
        self.note_unit_file(path);
        self.gate.file(path, &wanted).map_err(|error| self.refusal(path, error))
    }

    fn remove_entry(&self, path: &str, there: &State) -> Result<(), Trouble> {
        self.note_unit_file(path);
        match there {
            State::Absent => Ok(()),
            State::File { .. } | State::Link { .. } => {
                self.gate.remove(path).map_err(|error| self.refusal(path, error))
            }
            other => Err(self.in_the_way(path, other)),
        }
    }

    fn in_the_way(&self, path: &str, there: &State) -> Trouble {
        let found = if *there == State::Folder { "a folder" } else { "something else" };
        Trouble::Unexpected { path: path.into(), found: found.into(), expected: "a file".into() }
    }

    /// Puts a file, link or nothing back.
    pub(super) fn restore_file(
        &self,
        path: &str,
        before: &State,
        current: &State,
    ) -> Result<(), Trouble> {
        let put = match before {
            State::Absent => return self.remove_entry(path, current),
            State::Link { to } => self.gate.link(path, to),
            State::File { bytes, mode, uid, gid, modified_ns, attributes } => self.gate.file(
                path,
                &Wanted {
                    bytes: &bytes.0,
                    mode: *mode,
                    mode_may_differ: false,
                    owner: Some((*uid, *gid)),
                    modified_ns: Some(*modified_ns),
                    attributes,
                    sealed: true,
                },
            ),
            other => return Err(self.in_the_way(path, other)),
        };
        self.note_unit_file(path);
        put.map_err(|error| self.refusal(path, error))
    }

    /// systemd reads its files again when it is told to.
    fn note_unit_file(&self, path: &str) {
        if ["/etc/systemd/", "/run/systemd/"].iter().any(|top| path.starts_with(top)) {
            self.units_stale.set(true);
        }
    }

    pub(super) fn make_folder(&self, path: &str) -> Result<(), Trouble> {
        self.gate.make_folder(path, NEW_FOLDER).map_err(|error| self.refusal(path, error))
    }

    /// Removes a folder unless others keep something in it.
    pub(super) fn remove_folder(&self, path: &str) -> Result<(), Trouble> {
        match self.gate.remove_folder(path) {
            Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty => {
                Err(Trouble::NotEmpty { path: path.into() })
            }
            removed => removed.map_err(|error| self.refusal(path, error)),
        }
    }

    /// The block, wherever a link to it leads: distributions link it into the EFI partition.
    pub(super) fn grub_path(&self, path: &str) -> Result<String, Trouble> {
        self.gate.followed(path).map_err(|error| self.refusal(path, error))
    }

    pub(super) fn write_grub(
        &self,
        path: &str,
        key: &str,
        value: &str,
        before: &State,
    ) -> Result<(), Trouble> {
        let real = self.grub_path(path)?;
        let block = match before {
            State::File { bytes, .. } => bytes.clone(),
            State::Absent => grubenv::empty(),
            other => return Err(self.in_the_way(path, other)),
        };
        let new = self.block(path, grubenv::with(&block, key, Some(value.as_bytes())))?;
        self.write_file(&real, Some(&new), None, before)
    }

    /// Takes back one variable: the whole old block where nothing else has changed, else the
    /// variable alone.
    pub(super) fn restore_grub(
        &self,
        path: &str,
        key: &str,
        before: &State,
        current: &State,
    ) -> Result<(), Trouble> {
        let real = self.grub_path(path)?;
        let State::File { bytes: now, .. } = current else {
            return self.restore_file(&real, before, current);
        };
        let old = match before {
            State::File { bytes, .. } => bytes.clone(),
            _ => grubenv::empty(),
        };
        if grubenv::is_same_but_for(&old, now, key) {
            return self.restore_file(&real, before, current);
        }
        let was = self.block(path, grubenv::get(&old, key))?;
        let new = self.block(path, grubenv::with(now, key, was.as_deref()))?;
        self.write_file(&real, Some(&new), None, current)
    }

    fn block<T>(&self, path: &str, made: Result<T, grubenv::BlockError>) -> Result<T, Trouble> {
        made.map_err(|error| Trouble::Refused { path: path.into(), why: error.to_string() })
    }

    pub(super) fn efi_state(&self, name: &str) -> Result<State, Trouble> {
        match self.bytes(&efi_path(name)) {
            Ok(bytes) => Ok(State::Value { bytes, couples: Vec::new() }),
            Err(Trouble::Missing { .. }) => Ok(State::Absent),
            Err(trouble) => Err(trouble),
        }
    }

    pub(super) fn write_efi(&self, name: &str, bytes: &Bytes) -> Result<(), Trouble> {
        let path = efi_path(name);
        if !self.root.exists("/sys/firmware/efi/efivars") {
            let why = "no variables of the firmware here: not started by EFI, or efivarfs is not \
                       mounted";
            return Err(Trouble::Refused { path, why: why.into() });
        }
        self.gate.variable(&path, &bytes.0).map_err(|error| self.refusal(&path, error))
    }

    pub(super) fn remove_efi(&self, name: &str) -> Result<(), Trouble> {
        let path = efi_path(name);
        self.gate.remove_variable(&path).map_err(|error| self.refusal(&path, error))
    }
}
