//! Processor architectures of guests.

/// Processor architecture of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Arch {
    /// x86-64.
    #[value(name = "x86-64")]
    X86_64,
    /// aarch64.
    Aarch64,
    /// 32-bit ARM from version 7 on, with floating point.
    Armv7,
}

impl Arch {
    /// All of them.
    pub const ALL: &[Self] = &[Self::X86_64, Self::Aarch64, Self::Armv7];

    /// As people write it, and as folders of the cache are named.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86-64",
            Self::Aarch64 => "aarch64",
            Self::Armv7 => "armv7",
        }
    }

    /// As Rust names its target.
    #[must_use]
    pub const fn target(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-unknown-linux-gnu",
            Self::Aarch64 => "aarch64-unknown-linux-gnu",
            Self::Armv7 => "armv7-unknown-linux-gnueabihf",
        }
    }

    /// As Debian's compilers and libraries name it.
    #[must_use]
    pub const fn gnu(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-linux-gnu",
            Self::Aarch64 => "aarch64-linux-gnu",
            Self::Armv7 => "arm-linux-gnueabihf",
        }
    }
}
