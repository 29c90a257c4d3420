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
        Some(path) => {
            let root = Root::open_path(path).map_err(|error| exit::usage(error.to_string()))?;
            is_machine(path, &root)?;
            Ok(root)
        }
        None => Ok(Root::live()),
    }
}

/// Refuses a folder that holds no part of a machine, such as the one above it.
fn is_machine(path: &Path, root: &Root) -> anyhow::Result<()> {
    let has = |folder: &str| root.list_dir(folder).value().is_some_and(|list| !list.is_empty());
    let parts = ["proc", "sys", "etc", "boot"];
    if !path.is_dir() || parts.iter().any(|part| has(&format!("/{part}"))) {
        return Ok(());
    }
    let folders = root.list_dir("/").value().cloned().unwrap_or_default();
    let is_inner = |name: &&String| {
        parts.iter().any(|part| has(&format!("/{name}/{part}")))
            || [".config", "config.gz"].contains(&name.as_str())
            || name.starts_with("config-")
    };
    let inner = folders.iter().find(is_inner);
    let next = inner.map_or_else(
        || "give the folder that stands for / of the machine".to_owned(),
        |name| format!("did you mean {}?", path.join(name).display()),
    );
    let text = format!(
        "--root {}: holds none of /proc, /sys, /etc and /boot of a machine; {next}",
        path.display()
    );
    Err(exit::usage(text))
}
