//! What `tune plan`, `apply` and `trial` are asked for: the same words as for `check`, and which
//! findings a plan is made for.

use rtproof_host::{CpuList, Facts};
use rtproof_judge::{Intent, plan::Selection};
use rtproof_run::{
    intent::{IntentOptions, PERIOD_NS, PRIORITY},
    parse,
};

use crate::{exit, intent::IntentArgs};
use rtproof_run::cpus::online_cpus;

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

    /// Latency that it can bear
    #[arg(long = "budget", value_name = "TIME", value_parser = parse::budget)]
    pub budget_ns: Option<u64>,

    /// Take in what can do harm: less security, less notice of broken hardware. A check that is
    /// named is taken in all the same
    #[arg(long)]
    pub risky: bool,

    /// Take in what is doubtful: what helps or does not, depending on what the machine does. A
    /// check that is named is taken in all the same
    #[arg(long)]
    pub doubtful: bool,

    /// Take in files and boot parameters that do for ever what a change does until the next boot
    #[arg(long)]
    pub durable: bool,
}

impl RequestArgs {
    /// What was asked for, as it is written on the command line: the title of a journal.
    #[must_use]
    pub fn title(&self, command: &str, ids: &[String]) -> String {
        let mut title = command.to_owned();
        let options = [("--profile", &self.intent.profile), ("--cpus", &self.cpus)];
        for (name, value) in options {
            if let Some(value) = value {
                title += &format!(" {name} {value}");
            }
        }
        for id in ids {
            title += &format!(" {id}");
        }
        title
    }

    /// What the machine is meant for: the command line, else the profile's file, else the machine.
    ///
    /// # Errors
    /// Usage: a profile, checks or CPUs that are not there.
    pub fn intent(&self, facts: &Facts) -> anyhow::Result<Intent> {
        let wishes: IntentOptions = self.intent.requested().resolve()?;
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        let rt_cpus: CpuList = match (&self.cpus, &wishes.cpus) {
            (Some(list), _) => online_cpus(list, "--cpus", facts)?,
            (None, Some(list)) => online_cpus(list, "cpus of the profile", facts)?,
            (None, None) => Intent::default_rt_cpus(facts),
        };
        Ok(Intent {
            housekeeping: online.difference(&rt_cpus),
            rt_cpus,
            priority: self.priority.or(wishes.priority).unwrap_or(PRIORITY),
            period_ns: self.period_ns.or(wishes.period_ns).unwrap_or(PERIOD_NS),
            budget_ns: self.budget_ns.or(wishes.budget_ns),
            profile: wishes.profile,
            skip: wishes.skip,
        })
    }
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
