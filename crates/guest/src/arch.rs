//! Processor architectures of guests.

use std::fmt;

/// Processor architecture of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arch {
    /// x86-64.
    X86_64,
    /// aarch64.
    Aarch64,
}

impl Arch {
    /// That of this program; `None`: no guest of it can be made.
    #[must_use]
    pub const fn native() -> Option<Self> {
        if cfg!(target_arch = "x86_64") {
            Some(Self::X86_64)
        } else if cfg!(target_arch = "aarch64") {
            Some(Self::Aarch64)
        } else {
            None
        }
    }

    /// The kernel's name of its serial console under QEMU.
    #[must_use]
    pub const fn console(self) -> &'static str {
        match self {
            Self::X86_64 => "ttyS0",
            Self::Aarch64 => "ttyAMA0",
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X86_64 => "x86-64",
            Self::Aarch64 => "aarch64",
        })
    }
}
