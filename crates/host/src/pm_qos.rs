//! The global CPU latency limit: held for as long as the file stays open
//! (Documentation/power/pm_qos_interface.rst).

use std::{fs::File, io::Write};

use crate::Root;

/// The file of the limit.
pub const PATH: &str = "/dev/cpu_dma_latency";

/// A limit that is in force until this is dropped.
#[derive(Debug)]
pub struct Held {
    _file: File,
}

/// Why a limit cannot be held.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// A captured machine has no idle states to forbid.
    #[error("{PATH}: only a live machine can hold a latency limit")]
    NotLive,
    /// The limit is too large for the kernel.
    #[error("{PATH}: {0} µs is more than the kernel takes (2147483647)")]
    TooLarge(u32),
    /// The file cannot be opened or written.
    #[error("{PATH}: {0}; it needs root and a kernel with CONFIG_CPU_IDLE")]
    Io(#[from] std::io::Error),
}

/// Forbids idle states whose exit takes longer than so many microseconds.
///
/// # Errors
/// When the machine is not live, or the file cannot be opened or written.
#[expect(
    clippy::disallowed_methods,
    reason = "a device that is held open, of the live machine only"
)]
pub fn hold(root: &Root, limit_us: u32) -> Result<Held, HoldError> {
    if !root.is_live() {
        return Err(HoldError::NotLive);
    }
    let value = i32::try_from(limit_us).map_err(|_| HoldError::TooLarge(limit_us))?;
    let mut file = File::options().write(true).open(PATH)?;
    file.write_all(&value.to_ne_bytes())?;
    Ok(Held { _file: file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_captured_machine_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = Root::dir(dir.path()).expect("a root");
        assert!(matches!(hold(&root, 0), Err(HoldError::NotLive)));
        assert!(matches!(hold(&Root::live(), u32::MAX), Err(HoldError::TooLarge(_))));
    }
}
