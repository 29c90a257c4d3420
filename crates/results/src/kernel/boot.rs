//! A kernel that was booted under QEMU, and what ran in its guest.

use schemars::JsonSchema;
use serde::Serialize;

pub const SCHEMA: &str = "rtproof/kernel-boot/1";

/// What came of a boot that ended as it should.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Booted {
    /// Version of this form: `rtproof/kernel-boot/1`.
    pub schema: &'static str,
    pub image: String,
    /// Release, as the guest's `uname -r` reported it.
    pub release: String,
    pub arch: String,
    /// Where the configuration is from; null: unknown.
    pub config: Option<String>,
    /// Value of `PREEMPT_RT` there, `n`: not set; null: unknown.
    pub preempt_rt: Option<String>,
    pub guest: Guest,
    /// Seconds of the host from the start of QEMU until init spoke.
    pub init_s: f64,
    /// Seconds of the host until QEMU ended.
    pub seconds: f64,
    /// What ran inside, in order.
    pub steps: Vec<GuestStep>,
    /// The folder of all files.
    pub folder: String,
    pub files: Vec<String>,
    pub notes: Vec<String>,
}

/// The virtual machine that a kernel was booted in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Guest {
    pub qemu: String,
    /// How its time passes.
    pub clock: GuestClock,
    pub cpus: u32,
    pub memory_mib: u32,
    /// The kernel's command line.
    pub command_line: String,
}

/// How time passes in a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GuestClock {
    /// The processor's own virtualization; the host's time.
    Kvm,
    /// Emulated, in the host's time.
    Emulated,
    /// Emulated, and time is a count of instructions.
    Instructions,
}

impl GuestClock {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kvm => "KVM",
            Self::Emulated => "emulated",
            Self::Instructions => "emulated, counted instructions",
        }
    }

    /// What a latency that was measured in such a guest says.
    pub const fn says(self) -> &'static str {
        match self {
            Self::Kvm => {
                "Latencies are those of a guest: the host's scheduling and the exits to it are in \
                 them. They prove nothing about this kernel on the bare machine."
            }
            Self::Emulated => {
                "The processor is emulated and its CPUs are threads of the host: latencies say \
                 nothing about this kernel. Whether it works, how it is configured and what its \
                 checks find is what counts."
            }
            Self::Instructions => {
                "Time is a count: each instruction takes 4 ns. A latency is a length of code, \
                 not a time: caches, memory, buses, firmware, power states and other CPUs at the \
                 same time are not in it."
            }
        }
    }
}

/// One command that ran in the guest.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GuestStep {
    /// Its name: `check`, `prove`, `command`.
    pub name: String,
    pub command: Vec<String>,
    /// Exit code; null: not started, or ended by a signal.
    pub exit: Option<i32>,
    /// Why there is no exit code.
    pub why: Option<String>,
    /// Seconds of the guest.
    pub seconds: f64,
    /// What it wrote to standard output, as far as it is text.
    pub output: String,
    /// What it wrote to standard error.
    pub errors: String,
}
