//! Processor architectures of guests.

use std::{fmt, str::FromStr};

/// Processor architecture of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arch {
    X86_64,
    Aarch64,
    /// 32-bit ARM from version 7 on, with floating point.
    Armv7,
}

impl Arch {
    pub const ALL: &[Self] = &[Self::X86_64, Self::Aarch64, Self::Armv7];

    /// That of this program; `None`: no guest of it can be made.
    pub const fn native() -> Option<Self> {
        if cfg!(target_arch = "x86_64") {
            Some(Self::X86_64)
        } else if cfg!(target_arch = "aarch64") {
            Some(Self::Aarch64)
        } else if cfg!(target_arch = "arm") {
            Some(Self::Armv7)
        } else {
            None
        }
    }

    /// As people write it, and as folders of the cache are named.
    pub const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86-64",
            Self::Aarch64 => "aarch64",
            Self::Armv7 => "armv7",
        }
    }

    /// As Rust names its target.
    pub const fn target(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-unknown-linux-gnu",
            Self::Aarch64 => "aarch64-unknown-linux-gnu",
            Self::Armv7 => "armv7-unknown-linux-gnueabihf",
        }
    }

    /// As Debian's compilers and libraries name it.
    pub const fn gnu(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-linux-gnu",
            Self::Aarch64 => "aarch64-linux-gnu",
            Self::Armv7 => "arm-linux-gnueabihf",
        }
    }

    /// The kernel's name of its serial console under QEMU.
    pub const fn console(self) -> &'static str {
        match self {
            Self::X86_64 => "ttyS0",
            Self::Aarch64 | Self::Armv7 => "ttyAMA0",
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Arch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Self::ALL.iter().map(|arch| arch.name()).collect::<Vec<_>>().join(", ");
        let found = Self::ALL.iter().find(|arch| arch.name() == text);
        found.copied().ok_or_else(|| format!("expected one of {}", names()))
    }
}
