//! A package manager and how it is asked: what the managers' files share.

use std::time::Duration;

use rtproof_host::program;
use rtproof_results::kernel::find::KernelPackage;

/// Time that a manager may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(60);

pub(super) struct Manager {
    pub(super) id: &'static str,
    /// The program whose presence shows that the machine has it.
    pub(super) program: &'static str,
    pub(super) ask: fn(&mut Queries) -> Result<Vec<KernelPackage>, FindError>,
    /// What comes before the package's name to install and to remove it.
    pub(super) install: &'static str,
    pub(super) remove: &'static str,
}

/// Why nothing can be said.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// None of the managers is here.
    #[error(
        "no package manager found ({0}): what the distribution offers is unknown; build a kernel \
         with `rtproof kernel build`"
    )]
    NoManager(String),
    /// It could not be started.
    #[error("{command}: {source}")]
    Start { command: String, source: std::io::Error },
    #[error("{command}: exit status {status}: {said}")]
    Failed { command: String, status: String, said: String },
    /// It answered something else than expected.
    #[error("{command}: unexpected answer: {line:?}")]
    Answer { command: String, line: String },
}

/// The commands that were run.
#[derive(Debug, Default)]
pub(super) struct Queries {
    pub(super) commands: Vec<String>,
}

impl Queries {
    /// Runs one and gives what it writes to stdout. An exit status of `empty` means "none".
    pub(super) fn ask(&mut self, words: &[&str], empty: Option<i32>) -> Result<String, FindError> {
        let command = words.join(" ");
        self.commands.push(command.clone());
        let start = |source| FindError::Start { command: command.clone(), source };
        let mut asked = program::command(words[0]).map_err(start)?;
        asked.args(&words[1..]).env("LC_ALL", "C");
        let output = program::output_within(&mut asked, ANSWER_MAX).map_err(start)?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() || output.status.code().is_some_and(|is| Some(is) == empty) {
            return Ok(stdout);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        let status = output.status.code().map_or("none: a signal".into(), |is| is.to_string());
        let said = lines[lines.len().saturating_sub(3)..].join("; ");
        Err(FindError::Failed { command, status, said })
    }
}

/// Whether a name is a real-time kernel's: a part of it says so, and none says that it is
/// something beside the kernel.
pub(super) fn is_realtime(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let has = |words: &[&str]| parts.iter().any(|part| words.contains(part));
    has(&["rt", "realtime", "preempt_rt", "rt64"])
        && !has(&[
            "dbg",
            "debug",
            "debuginfo",
            "unsigned",
            "headers",
            "devel",
            "doc",
            "docs",
            "tools",
            "dev",
            "source",
            "modules",
            "selftests",
            "kvm",
            "template",
            "base",
            "vdso",
            "extra",
            "internal",
            "core",
            "matched",
        ])
}
