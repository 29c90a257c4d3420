//! What `tune plan`, `apply` and `trial` request: the same options as `check`, and which findings a
//! plan is made for.

use std::path::PathBuf;

use rtproof_host::{Facts, Root, tune::Change};
use rtproof_judge::{
    Intent,
    plan::{Level, Selection},
};
use rtproof_run::{intent::IntentOptions, parse};

use crate::{exit, intent::IntentArgs, next::Given};

/// Which machine.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct RootArgs {
    /// Work on the machine in a folder that holds its /proc, /sys, /etc, /boot and /var
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

/// [`Level`], on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LevelArg {
    /// What is bad
    Safe,
    /// And what keeps the rest of the machine away from the CPUs of --cpus
    #[default]
    Standard,
    /// And what is doubtful: whether it helps depends on what the machine does
    Max,
}

impl LevelArg {
    pub const fn level(self) -> Level {
        match self {
            Self::Safe => Level::Safe,
            Self::Standard => Level::Standard,
            Self::Max => Level::Max,
        }
    }
}

/// What the machine is for.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct RequestArgs {
    /// Profile and checks left out.
    #[command(flatten)]
    pub intent: IntentArgs,

    /// Real-time CPUs; default: those that the machine keeps free, else all
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,

    /// Real-time priority of the application (SCHED_FIFO); default: 80
    #[arg(long, value_name = "N", value_parser = parse::priority)]
    pub priority: Option<u32>,

    /// Period of its loop; default: 1ms
    #[arg(long = "period", value_name = "TIME", value_parser = parse::period)]
    pub period_ns: Option<u64>,

    /// Latency budget of the application
    #[arg(long = "budget", value_name = "TIME", value_parser = parse::budget)]
    pub budget_ns: Option<u64>,

    /// User that the application runs as, for the checks of its rights (limits-rtprio,
    /// limits-memlock); default: who asks through sudo
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,

    /// Include what can do harm: less security, less notice of broken hardware. Checks named
    /// explicitly are always included
    #[arg(long)]
    pub risky: bool,

    /// How much to change: safe (bad findings), standard (also what keeps the rest of the machine
    /// away from the real-time CPUs, if --cpus names some), max (also doubtful findings). Whether
    /// doubtful ones help depends on what the machine does. Checks named explicitly are
    /// always included
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t)]
    pub level: LevelArg,

    /// Include files and boot parameters that make permanent what a change does until the next boot
    #[arg(long)]
    pub durable: bool,
}

impl RequestArgs {
    /// The request as it is written on the command line: the title of a journal.
    pub fn title(&self, command: &str, ids: &[String]) -> String {
        let mut title = format!("{command}{}", self.given().options());
        match self.level {
            LevelArg::Safe => title += " --level safe",
            LevelArg::Standard => {}
            LevelArg::Max => title += " --level max",
        }
        let switches = [("--risky", self.risky), ("--durable", self.durable)];
        for (name, _) in switches.into_iter().filter(|&(_, is_on)| is_on) {
            title += &format!(" {name}");
        }
        for id in ids {
            title += &format!(" {id}");
        }
        title
    }

    /// What the machine is for, as it was given.
    pub(crate) fn given(&self) -> Given<'_> {
        Given {
            intent: &self.intent,
            cpus: self.cpus.as_deref(),
            priority: self.priority,
            period_ns: self.period_ns,
            budget_ns: self.budget_ns,
            user: self.user.as_deref(),
        }
    }

    /// What the machine is meant for: the command line, else the profile's file, else the machine.
    ///
    /// # Errors
    /// Usage: a profile, checks or CPUs that are not there; no name of a user.
    pub fn intent(&self, root: &Root, facts: &Facts) -> anyhow::Result<Intent> {
        let stated = IntentOptions {
            cpus: self.cpus.clone(),
            priority: self.priority,
            period_ns: self.period_ns,
            budget_ns: self.budget_ns,
            ..IntentOptions::default()
        };
        let user = rtproof_run::intent::user(root, self.user.as_deref())?;
        let intent = self.intent.requested().resolve()?.intent(stated, facts)?;
        Ok(Intent { user, ..intent })
    }
}

/// Whether a change installs packages.
pub(super) const fn installs(change: &Change) -> bool {
    matches!(change, Change::Package { .. })
}

/// Checks and sections named, each of which is there.
///
/// # Errors
/// Usage: one that is not, with names like it.
pub(crate) fn named(ids: &[String]) -> anyhow::Result<Vec<String>> {
    let words = ids.iter().flat_map(|ids| ids.split(',')).map(str::trim);
    let words: Vec<String> = words.filter(|id| !id.is_empty()).map(str::to_owned).collect();
    let selection = Selection { ids: words, ..Selection::default() };
    match selection.unknown().next() {
        None => Ok(selection.ids.clone()),
        Some(id) => {
            let why = rtproof_run::intent::known(id).err().unwrap_or_default();
            Err(exit::usage(format!("{id}: {why}")))
        }
    }
}
