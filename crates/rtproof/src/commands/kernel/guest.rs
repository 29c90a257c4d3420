//! The guest that a kernel boots in: what `boot`, `compare` and `bisect` take of it.

use std::{path::PathBuf, time::Duration};

use rtproof_run::{kernel::boot::BootRequest, parse};

/// Arguments of a guest.
#[derive(Clone, Debug, clap::Args)]
pub struct GuestArgs {
    /// Memory, MiB
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = 1024,
        value_parser = clap::value_parser!(u32).range(64..=1_048_576)
    )]
    pub memory: u32,

    /// Parameters for the kernel's command line
    #[arg(
        long,
        value_name = "PARAMETERS",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    pub append: String,

    /// A static rtproof for the kernel's architecture; default: this program, with its libraries
    #[arg(long, value_name = "FILE")]
    pub binary: Option<PathBuf>,

    /// Longest time of a guest from when init runs; until then it has 3 minutes
    #[arg(long, value_name = "TIME", value_parser = parse::run_duration, default_value = "10m")]
    pub timeout: u64,
}

impl GuestArgs {
    /// A boot with these steps. The kernel is named later.
    pub(super) fn request(&self, steps: Vec<(String, Vec<String>)>) -> BootRequest {
        BootRequest {
            kernel: PathBuf::new(),
            config: None,
            modules: None,
            load: Vec::new(),
            binary: self.binary.clone(),
            cpus: None,
            threads: 1,
            memory_mib: self.memory,
            no_kvm: false,
            icount: false,
            append: self.append.clone(),
            steps,
            programs: Vec::new(),
            files: Vec::new(),
            folder: None,
            limit: Duration::from_nanos(self.timeout),
        }
    }

    /// The same on one CPU whose time counts instructions.
    pub(super) fn counted(&self, step: (String, Vec<String>)) -> BootRequest {
        BootRequest { cpus: Some(1), no_kvm: true, icount: true, ..self.request(vec![step]) }
    }
}
