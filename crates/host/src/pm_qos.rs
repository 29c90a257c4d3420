//! The global CPU latency limit: held for as long as the file stays open
//! (Documentation/power/pm_qos_interface.rst).

use std::{
    fs::File,
    io::{Read, Write},
};

use crate::{Reading, Root};

/// The file of the limit.
pub const PATH: &str = "/dev/cpu_dma_latency";

/// What the kernel answers where no process holds a limit (include/linux/pm_qos.h,
/// `PM_QOS_CPU_LATENCY_DEFAULT_VALUE`).
const NO_LIMIT_US: i32 = 2_000_000_000;

/// The lowest limit that is held now, in microseconds; `None`: no process holds one. Opened for
/// reading alone: that enters a request without a limit, which moves nothing (kernel/power/qos.c).
#[expect(clippy::disallowed_methods, reason = "a device, which is no file of a Root")]
pub fn limit_us(root: &Root) -> Reading<Option<u32>> {
    let ask = || {
        let mut bytes = [0; 4];
        File::open(PATH)?.read_exact(&mut bytes)?;
        Ok(i32::from_ne_bytes(bytes).to_string())
    };
    let Some(answer) = root.call("cpu_dma_latency", ask) else {
        return Reading::denied(PATH, "only a live machine has a latency limit");
    };
    answer.with_path(PATH).parsed("microseconds", |text| match text.parse().ok()? {
        NO_LIMIT_US => Some(None),
        us => u32::try_from(us).ok().map(Some),
    })
}

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

    #[test]
    fn a_folder_does_not_tell_the_limit_and_the_live_machine_does_or_refuses() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = Root::dir(dir.path()).expect("a root");
        assert!(limit_us(&root).why_unknown().is_some_and(|why| why.contains("live machine")));
        let live = limit_us(&Root::live());
        assert_eq!(live.path, PATH);
        assert!(live.value().is_some() || live.why_unknown().is_some_and(|why| !why.is_empty()));
    }
}
