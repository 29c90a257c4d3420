//! The files of a boot loader as they would be after some changes: so that what is about to be
//! written can be read back before it is written.

use crate::{
    Reading, Root,
    change::{Bytes, Change},
    reading::State,
};

use super::error::BootError;

/// Largest file of a boot loader that is read as text.
const TEXT_BYTES_MAX: usize = 8 << 20;

/// A machine with changes made in thought.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    root: &'a Root,
    changes: &'a [Change],
}

impl<'a> View<'a> {
    pub(super) const fn new(root: &'a Root) -> Self {
        Self { root, changes: &[] }
    }

    /// The same machine after these changes.
    pub(super) const fn with(root: &'a Root, changes: &'a [Change]) -> Self {
        Self { root, changes }
    }

    pub(super) const fn root(&self) -> &'a Root {
        self.root
    }

    /// The bytes of a file; `None` when it is not there.
    ///
    /// # Errors
    /// It is there and cannot be read, or is larger than any file of a boot loader.
    pub(super) fn bytes(&self, path: &str) -> Result<Option<Vec<u8>>, BootError> {
        for change in self.changes.iter().rev() {
            if let Change::File { path: changed, content, .. } = change
                && changed == path
            {
                return Ok(content.as_ref().map(|Bytes(bytes)| bytes.clone()));
            }
        }
        let bytes = known(self.root.read_bytes(path))?;
        if bytes.as_ref().is_some_and(|bytes| bytes.len() > TEXT_BYTES_MAX) {
            let why = "larger than 8 MiB, which no configuration of a boot loader is";
            return Err(BootError::file(path, why));
        }
        Ok(bytes)
    }

    /// The text of a file; bytes that are not UTF-8 are an error, because the text is written back.
    pub(super) fn text(&self, path: &str) -> Result<Option<String>, BootError> {
        let Some(bytes) = self.bytes(path)? else { return Ok(None) };
        String::from_utf8(bytes).map(Some).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let before = &error.as_bytes()[..at];
            let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
            BootError::Text {
                path: path.into(),
                line,
                what: "a byte that is no UTF-8 text".into(),
                next: "see whether the file is damaged",
            }
        })
    }

    /// Names in a folder with files that are to come; empty when it is not there.
    pub(super) fn names(&self, folder: &str) -> Result<Vec<String>, BootError> {
        let mut names = known(self.root.list_dir(folder))?.unwrap_or_default();
        for change in self.changes {
            if let Change::File { path, content: Some(_), .. } = change
                && let Some(name) = path.strip_prefix(folder).and_then(|p| p.strip_prefix('/'))
                && !name.contains('/')
                && !names.iter().any(|known| known == name)
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.root.exists(path)
    }
}

/// `None` for what is not there; an error for what cannot be read.
pub(super) fn known<T>(reading: Reading<T>) -> Result<Option<T>, BootError> {
    match reading.state {
        State::Known { value } => Ok(Some(value)),
        State::Absent => Ok(None),
        State::Denied { why } => Err(BootError::file(reading.path, why)),
        State::Malformed { found, expected } => {
            let why = format!("holds \"{found}\", expected {expected}");
            Err(BootError::file(reading.path, why))
        }
    }
}

/// A file with new content.
pub(super) fn file(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Change {
    Change::File { path: path.into(), content: Some(Bytes(content.into())), mode: None }
}

/// A file that is to be away.
pub(super) fn gone(path: impl Into<String>) -> Change {
    Change::File { path: path.into(), content: None, mode: None }
}
