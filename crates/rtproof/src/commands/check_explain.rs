//! `rtproof check explain`: everything that is known about a check, without a machine and on it.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use schemars::JsonSchema;
use serde::Serialize;

use rtproof_host::{
    Facts, Knob,
    knob::{KnobArch, Place},
};
use rtproof_judge::{
    Finding, Intent, Profile, application,
    checks::{self, Check, Judge},
    profile::WorkloadKind,
};
use rtproof_render::page::{BOLD, DIM, Terminal, wrapped};

use crate::exit::TextOutput;
use crate::{exit, open_root};

const SCHEMA: &str = "rtproof/explain/1";

/// Column at which texts begin.
const INDENT: &str = "            ";

/// Arguments of `check explain`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof check explain
  rtproof check explain fair-server
  rtproof check explain thp --root machine.txt")]
pub struct Args {
    /// Checks; none: a list of all
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,

    /// Say what a captured machine has instead of this one
    #[arg(long, value_name = "PATH")]
    pub root: Option<PathBuf>,

    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// A check as it is explained.
#[derive(Debug, Serialize, JsonSchema)]
struct Explained {
    /// Check.
    id: &'static str,
    title: &'static str,
    why: &'static str,
    /// Where that is from.
    source: &'static str,
    /// What the change costs; null: nothing worth telling.
    trade_off: Option<&'static str>,
    /// How much it may matter.
    impact: rtproof_judge::Impact,
    /// When a change takes effect.
    takes_effect: rtproof_judge::When,
    /// What is read, and how it is changed.
    knobs: Vec<KnobShown>,
    /// What is wanted: profile and value.
    wanted: Vec<(String, String)>,
    /// Its finding on this machine; null: it judges applications.
    here: Option<Finding>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CheckExplainDocument {
    schema: &'static str,
    /// The checks that were asked for.
    checks: Vec<Explained>,
}

/// A knob as it is shown.
#[derive(Debug, Serialize, JsonSchema)]
struct KnobShown {
    /// Where it is read.
    read: String,
    /// How it is set; null: it cannot be.
    set: Option<String>,
    /// Kernel parameter that does the same at boot.
    boot: Option<&'static str>,
    /// How it is undone.
    undo: &'static str,
    /// What changes with it.
    moves_with: &'static [&'static str],
    /// Oldest kernel that has it.
    since: Option<String>,
    /// Architecture that it is of; null: any.
    only_on: Option<&'static str>,
}

impl KnobShown {
    fn of(knob: &Knob) -> Self {
        let (read, set) = match knob.place {
            Place::File(path) | Place::Choice(path) if knob.is_counter => (path.to_owned(), None),
            Place::File(path) | Place::Choice(path) => {
                (path.to_owned(), Some(format!("echo VALUE > {path}")))
            }
            Place::Parameter(name) => {
                ("/proc/cmdline".into(), Some(format!("boot with {name}=VALUE")))
            }
            Place::BuildOption(name) => (
                format!("CONFIG_{name} of the kernel's configuration"),
                Some("another kernel".into()),
            ),
            Place::Units(units) => (
                format!("unit files: {}", units.join(", ")),
                Some("systemctl enable, disable, mask UNIT".into()),
            ),
            Place::Key(what) | Place::Other(what) => (what.to_owned(), None),
        };
        Self {
            read,
            set,
            boot: knob.boot,
            undo: knob.undo.text(),
            moves_with: knob.couples,
            since: knob.since.map(|(major, minor)| format!("Linux {major}.{minor}")),
            only_on: match knob.arch {
                KnobArch::Any => None,
                KnobArch::X86 => Some("x86"),
                KnobArch::Arm64 => Some("aarch64"),
            },
        }
    }
}

/// Runs the command.
///
/// # Errors
/// A check that does not exist, a root that is no captured machine.
pub(super) fn run_check_explain(args: &Args) -> anyhow::Result<u8> {
    let text = TextOutput::new(args.json);
    if args.ids.is_empty() {
        text.print(list)?;
        let all = checks::all().chain(application::all());
        let all: Vec<(&str, &str)> = all.map(|check| (check.id, check.title)).collect();
        text.print_json(&all)?;
        return Ok(exit::ACCEPTED);
    }
    let mut chosen = Vec::new();
    for id in &args.ids {
        let why = || {
            let known = rtproof_run::intent::known(id);
            exit::usage(format!("{id}: {}", known.err().unwrap_or_default()))
        };
        chosen.push(checks::by_id(id).or_else(|| application::by_id(id)).ok_or_else(why)?);
    }
    let facts = Facts::read(&open_root(args.root.as_deref())?);
    let all: Vec<Explained> = chosen.into_iter().map(|check| explain(check, &facts)).collect();
    text.print(|to| all.iter().try_for_each(|explained| show(to, explained)))?;
    text.print_json(&CheckExplainDocument { schema: SCHEMA, checks: all })?;
    Ok(exit::ACCEPTED)
}

/// Every check in a line, by section.
fn list(to: &mut Terminal) -> io::Result<()> {
    let all = checks::all().chain(application::all());
    let width = all.map(|check| check.id.len()).max().unwrap_or(0);
    for section in checks::sections() {
        let (name, title) = (section.name, section.title);
        writeln!(to, "{BOLD}{name}{BOLD:#}  {DIM}{title}{DIM:#}")?;
        for check in section.checks {
            let first = format!("  {:<width$}  ", check.id);
            wrapped(to, &first, &" ".repeat(width + 4), check.title)?;
        }
    }
    writeln!(to, "{BOLD}application{BOLD:#}  {DIM}of one application: --pid, --unit{DIM:#}")?;
    for check in application::all() {
        let first = format!("  {:<width$}  ", check.id);
        wrapped(to, &first, &" ".repeat(width + 4), check.title)?;
    }
    Ok(())
}

fn intent(kind: WorkloadKind, facts: &Facts) -> Intent {
    let (rt_cpus, proposed) = Intent::default_rt_cpus(facts);
    let online = facts.cpus.online.value().cloned().unwrap_or_default();
    Intent {
        housekeeping: online.difference(&rt_cpus),
        rt_cpus,
        proposed,
        priority: rtproof_run::intent::PRIORITY,
        period_ns: rtproof_run::intent::PERIOD_NS,
        budget_ns: None,
        profile: Profile::of(kind),
        skip: std::collections::BTreeMap::new(),
        user: None,
    }
}

fn explain(check: &'static Check, facts: &Facts) -> Explained {
    let judge = |kind| checks::judge_one(check, facts, &intent(kind, facts));
    let is_of_machine = !matches!(check.judge, Judge::App(_));
    Explained {
        id: check.id,
        title: check.title,
        why: check.why,
        source: check.source,
        trade_off: check.trade_off,
        impact: check.impact,
        takes_effect: check.when,
        knobs: check.knobs.iter().map(|knob| KnobShown::of(knob)).collect(),
        wanted: if is_of_machine { wanted(judge) } else { Vec::new() },
        here: is_of_machine.then(|| judge(WorkloadKind::default())),
    }
}

/// What each profile wants; one line where all want the same.
fn wanted(judge: impl Fn(WorkloadKind) -> Finding) -> Vec<(String, String)> {
    let mut groups: Vec<(Vec<&str>, String)> = Vec::new();
    for kind in WorkloadKind::ALL {
        let wanted = judge(kind).wanted;
        match groups.iter_mut().find(|(_, known)| *known == wanted) {
            Some((names, _)) => names.push(kind.name()),
            None => groups.push((vec![kind.name()], wanted)),
        }
    }
    let is_one = groups.len() == 1;
    let name = |names: Vec<&str>| if is_one { "every profile".into() } else { names.join(", ") };
    groups.into_iter().map(|(names, wanted)| (name(names), wanted)).collect()
}

fn show(to: &mut Terminal, explained: &Explained) -> io::Result<()> {
    let mut line =
        |name: &str, text: &str| wrapped(to, &format!("  {DIM}{name:<8}{DIM:#}  "), INDENT, text);
    line("check", &format!("{BOLD}{}{BOLD:#}: {}", explained.id, explained.title))?;
    line("why", explained.why)?;
    line("costs", explained.impact.text())?;
    for (profiles, wanted) in &explained.wanted {
        line("wanted", &format!("{wanted} ({profiles})"))?;
    }
    if let Some(trade_off) = explained.trade_off {
        line("but", trade_off)?;
    }
    for knob in &explained.knobs {
        line("read", &knob.read)?;
        for set in knob.set.iter().map(String::as_str).chain(knob.boot) {
            line("set", &set.replace("{}", "<value>"))?;
        }
        line("undo", knob.undo)?;
        if !knob.moves_with.is_empty() {
            line("moves", &knob.moves_with.join(", "))?;
        }
        let since = knob.since.as_ref().map(|since| format!("since {since}"));
        let arch = knob.only_on.map(|arch| format!("only on {arch}"));
        let kernels: Vec<String> = since.into_iter().chain(arch).collect();
        if !kernels.is_empty() {
            line("kernels", &kernels.join(", "))?;
        }
    }
    line("changes", explained.takes_effect.title())?;
    line("source", explained.source)?;
    if let Some(finding) = &explained.here {
        let (word, _) = rtproof_render::page::word(finding.status);
        line("here", &format!("{word}: {}", finding.summary))?;
        for evidence in &finding.evidence {
            line("", &format!("{}: {}", evidence.path, evidence.value))?;
        }
        for remedy in &finding.remedies {
            line("fix", &remedy.to_string())?;
        }
    }
    writeln!(to)
}
