//! The machine of a command.

use std::path::Path;

use rtproof_host::Root;

use crate::exit;

/// The machine to read: the live one, or the captured one under `--root`.
///
/// # Errors
/// Usage: it is no captured machine.
pub(crate) fn open_root(path: Option<&Path>) -> anyhow::Result<Root> {
    match path {
        Some(path) => Root::open_path(path).map_err(|error| exit::usage(error.to_string())),
        None => Ok(Root::live()),
    }
}
