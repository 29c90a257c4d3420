//! How this binary starts itself as a worker, and what the threads of a worker share.

use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use super::super::load::Counter;

/// First argument: run a load.
pub(super) const RUN: &str = "run";
/// First argument: become the user's command.
pub(super) const LAUNCH: &str = "launch";
/// First argument: end at once.
pub(super) const NO_OP: &str = "nop";

/// State that the threads of a worker share.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) counter: Counter,
    pub(super) stop: AtomicBool,
}

/// How this binary is started as a worker again.
#[derive(Clone)]
pub(super) struct Own {
    /// Arguments between the binary's name and those of [`worker_main`](crate::worker_main).
    prefix: Vec<String>,
}

impl Own {
    pub(super) fn find(worker_args: usize) -> Self {
        let all: Vec<_> = std::env::args_os().skip(1).collect();
        let prefix = all.len().saturating_sub(worker_args);
        let prefix = all[..prefix].iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
        Self { prefix }
    }

    /// Starts this binary with `args` for [`worker_main`](crate::worker_main), without input and
    /// output.
    pub(super) fn command(&self, args: &[&str]) -> Command {
        // The link and not the path: an upgrade may replace the file during a run.
        let mut command = Command::new("/proc/self/exe");
        command.args(&self.prefix).args(args).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }
}
