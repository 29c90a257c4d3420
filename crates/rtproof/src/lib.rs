//! The program: command line, exit codes, printing.
#![doc = include_str!("../README.md")]

mod answers;
pub mod commands;
pub mod exit;
mod next;
mod show;

pub use commands::Cli;

use std::{
    io::{self, IsTerminal, Write},
    path::Path,
    sync::{
        OnceLock,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use anstream::ColorChoice;
use anyhow::Context;
use clap::CommandFactory;
use schemars::{JsonSchema, Schema, schema_for};

use rtproof_host::{Root, door::write_whole, text};
use rtproof_judge::{Integrity, Report};
use rtproof_record::{Run, import::Imported};
use rtproof_render::page::{self, Extra, WIDTH_MAX, WIDTH_MIN};
use rtproof_results::{Answered, kernel, measure, tune};
use rtproof_run::{intent::RequestedIntent, parse};
use rtproof_stats::moving::Lengths;

use crate::commands::tune::{apply, persist, undo};
use crate::commands::{check, check_explain, experiment, experiment_boots, explain, files};

// Questions to whoever sits at the terminal. What is asked goes to stderr: stdout is the answer.

/// Interval between checks whether to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Whether a question can be answered here.
pub(crate) fn is_terminal() -> bool {
    io::stdin().is_terminal()
}

/// Asks for consent; anything but yes is no.
///
/// # Errors
/// Usage: no terminal to answer.
pub(crate) fn consent(question: &str) -> anyhow::Result<bool> {
    if !is_terminal() {
        let why = "nobody can be asked here (stdin is not a terminal)";
        return Err(exit::usage(format!("{question} {why}: give --yes")));
    }
    exit::print_held()?;
    stderr_write(&format!("{question} [y/N] "))?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Waits for ENTER; `false`: time is up, there is no more input, or `stop` says so.
pub(crate) fn enter_within(time: Duration, stop: impl Fn() -> bool) -> bool {
    let (answered, came) = mpsc::channel();
    // Ends with the process: a read from a terminal cannot be called off.
    thread::spawn(move || {
        let mut line = String::new();
        let is_read = io::stdin().read_line(&mut line).is_ok_and(|bytes| bytes > 0);
        let _ = answered.send(is_read);
    });
    let until = Instant::now() + time;
    while !stop() {
        let left = until.saturating_duration_since(Instant::now());
        match came.recv_timeout(left.min(POLL_INTERVAL)) {
            Ok(is_read) => return is_read,
            Err(RecvTimeoutError::Timeout) if left > POLL_INTERVAL => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return false,
        }
    }
    false
}

/// The command line: one definition for `--help`, reference pages, man pages and completions.
pub fn command() -> clap::Command {
    Cli::command()
}

// Options that say what the machine is for.

/// Arguments that `check` and `prove` share.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct IntentArgs {
    /// What the machine is for: periodic, busy-poll, audio, rt-vm-host, rt-vm-guest,
    /// container-host, or a file (docs/profiles.md). Default: periodic
    #[arg(long, value_name = "NAME|FILE")]
    pub profile: Option<String>,

    /// Skip a check, with the reason: --skip ipv6="the fieldbus needs it"; repeatable
    #[arg(long, value_name = "ID=REASON")]
    pub skip: Vec<String>,
}

impl IntentArgs {
    pub fn requested(&self) -> RequestedIntent {
        RequestedIntent { profile: self.profile.clone(), skip: self.skip.clone() }
    }
}

// How the answer is shown: colours, width, how much of it. Stated once for all commands, kept for
// the process.

/// Columns where there is no terminal and `COLUMNS` is not set.
const WIDTH_ELSEWHERE: usize = 100;

/// Options that every command has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct Manners {
    /// Colours; auto: on a terminal, unless NO_COLOR or CLICOLOR=0 is set
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    color: Color,

    /// Print the answer alone: result, reasons, next command; errors and warnings stay
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,

    /// Print details, too: what was read and why it matters; moments of the measured values
    #[arg(short, long, global = true)]
    verbose: bool,
}

/// `--color`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// Where stdout is a terminal.
    #[default]
    Auto,
    /// Everywhere.
    Always,
    /// Nowhere.
    Never,
}

static MANNERS: OnceLock<Manners> = OnceLock::new();

impl Manners {
    /// Keeps them for the process; the first call counts.
    pub fn keep(self) {
        set_color(self.color);
        let _ = MANNERS.set(self);
    }
}

/// Sets the colours of stdout and stderr. Without a choice the environment and the terminal decide.
fn set_color(color: Color) {
    match color {
        Color::Auto => {}
        Color::Always => ColorChoice::Always.write_global(),
        Color::Never => ColorChoice::Never.write_global(),
    }
}

/// Colours of the help, which is printed before the arguments are known as a whole.
pub fn color_of(mut args: impl Iterator<Item = std::ffi::OsString>) {
    while let Some(arg) = args.next() {
        let value = match arg.to_str() {
            Some("--") => return,
            Some("--color") => args.next().and_then(|value| value.to_str().map(str::to_owned)),
            Some(arg) => arg.strip_prefix("--color=").map(str::to_owned),
            None => None,
        };
        match value.as_deref() {
            Some("always") => set_color(Color::Always),
            Some("never") => set_color(Color::Never),
            _ => {}
        }
    }
}

fn kept() -> Manners {
    MANNERS.get().copied().unwrap_or_default()
}

/// Whether the answer alone is wanted.
pub(crate) fn is_quiet() -> bool {
    kept().quiet
}

/// Whether details are wanted.
pub(crate) fn is_verbose() -> bool {
    kept().verbose
}

/// Columns of text: those of the terminal or of `COLUMNS`, within bounds; else always the same.
pub(crate) fn width() -> usize {
    static WIDTH: OnceLock<usize> = OnceLock::new();
    *WIDTH.get_or_init(|| {
        let size = rustix::termios::tcgetwinsize(io::stdout());
        let terminal =
            size.ok().map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0);
        let stated = || std::env::var("COLUMNS").ok()?.parse().ok();
        let columns = terminal.or_else(stated).unwrap_or(WIDTH_ELSEWHERE);
        columns.clamp(WIDTH_MIN, WIDTH_MAX)
    })
}

// Lengths of moving statistics on the command line, of `report` and `export`.

/// Options.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct MovingArgs {
    /// Show moving statistics of windows of this length, e.g. 10s; default: a tenth of the run
    #[arg(long, value_name = "TIME", value_parser = parse::time)]
    pub moving: Option<u64>,

    /// Age at which a sample counts half in the exponential ones; default: half of the window
    #[arg(long, value_name = "TIME", value_parser = parse::time)]
    pub half_life: Option<u64>,
}

impl MovingArgs {
    /// What is asked for.
    pub(crate) const fn lengths(self) -> Lengths {
        Lengths { window_ns: self.moving, half_life_ns: self.half_life }
    }
}

// HTML pages written to files.

/// Writes the HTML report of a run; `next` is a command to go on with. A file of that name is
/// replaced.
///
/// # Errors
/// When the file cannot be written; a file of that name is left as it was.
pub(crate) fn write_html(
    path: &Path,
    run: &Run,
    report: &Report,
    banner: Option<String>,
    next: Option<&str>,
) -> anyhow::Result<()> {
    let page = page::render(run, report, &Extra { banner, next: next.map(str::to_owned) });
    write_whole(path, |to| Ok(to.write_all(page.as_bytes())?)).with_context(|| {
        let record = match report.record {
            Integrity::Sealed => "; the record is complete",
            Integrity::Torn | Integrity::Altered { .. } => "",
        };
        format!("{}: the report cannot be written{record}", path.display())
    })
}

/// Writes the page of what was imported. A file of that name is replaced.
///
/// # Errors
/// When the file cannot be written; a file of that name is left as it was.
pub(crate) fn write_imported(
    path: &Path,
    imported: &Imported,
    banner: Option<&str>,
) -> anyhow::Result<()> {
    let page = page::imported_html(imported, banner);
    write_whole(path, |to| Ok(to.write_all(page.as_bytes())?))
        .with_context(|| format!("{}: the report cannot be written", path.display()))
}

/// The machine to read: the live one, or the captured one under `--root`.
///
/// # Errors
/// Usage: it is no captured machine.
pub(crate) fn open_root(path: Option<&Path>) -> anyhow::Result<Root> {
    path.map_or_else(|| Ok(Root::live()), |path| open_files(&[path]))
}

/// The machine that files make: one that holds it, or several that hold parts.
///
/// # Errors
/// Usage: no part of a machine, or of two machines.
pub(crate) fn open_files(paths: &[impl AsRef<Path>]) -> anyhow::Result<Root> {
    let root = Root::open_paths(paths).map_err(|error| exit::usage(error.to_string()))?;
    if let [path] = paths {
        is_machine(path.as_ref(), &root)?;
    }
    Ok(root)
}

/// Refuses a folder that holds no part of a machine, such as the one above it.
fn is_machine(path: &Path, root: &Root) -> anyhow::Result<()> {
    let has = |folder: &str| root.list_dir(folder).value().is_some_and(|list| !list.is_empty());
    let parts = ["proc", "sys", "etc", "boot"];
    if !path.is_dir() || parts.iter().any(|part| has(&format!("/{part}"))) {
        return Ok(());
    }
    let folders = root.list_dir("/").value().cloned().unwrap_or_default();
    let is_inner = |name: &&String| {
        parts.iter().any(|part| has(&format!("/{name}/{part}")))
            || [".config", "config.gz"].contains(&name.as_str())
            || name.starts_with("config-")
    };
    let inner = folders.iter().find(is_inner);
    let next = inner.map_or_else(
        || "give the folder that stands for / of the machine".to_owned(),
        |name| format!("did you mean {}?", path.join(name).display()),
    );
    let text = format!(
        "--root {}: holds none of /proc, /sys, /etc and /boot of a machine; {next}",
        path.display()
    );
    Err(exit::usage(text))
}

// Every JSON form that is printed or kept, by the version that it names: the pages of
// docs/reference are made from this list, and a test finds what is not on it.

/// A JSON document that rtproof prints, with its schema.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The version as its documents name it, e.g. `rtproof/report/2`.
    pub id: &'static str,
    /// Name of its page in docs/reference, without `.schema.json`.
    pub page: &'static str,
    pub schema: fn() -> Schema,
}

const fn form(id: &'static str, page: &'static str, schema: fn() -> Schema) -> Form {
    Form { id, page, schema }
}

fn of<T: JsonSchema>() -> Schema {
    schema_for!(T)
}

/// All of them, by page.
pub const FORMS: &[Form] = &[
    form("rtproof/capture/1", "capture", of::<files::Captured<'static>>),
    form("rtproof/check/2", "check", of::<Answered<'static, check::Audit>>),
    form("rtproof/explain/1", "check-explain", of::<check_explain::CheckExplainDocument>),
    form(
        "rtproof/compare/3",
        "compare",
        of::<Answered<'static, rtproof_judge::compare::Comparison>>,
    ),
    form(
        "rtproof/experiment/1",
        "experiment",
        of::<Answered<'static, experiment::ExperimentDocument<'static>>>,
    ),
    form(
        "rtproof/experiment-boots/1",
        "experiment-boots",
        of::<Answered<'static, experiment_boots::ExperimentBootsDocument<'static>>>,
    ),
    form(
        "rtproof/experiment-state/1",
        "experiment-state",
        of::<rtproof_run::experiment::boots::BootsState>,
    ),
    form("rtproof/explain-rules/1", "explain-rules", of::<explain::RulesDocument>),
    form("rtproof/import/1", "import", of::<rtproof_render::sections::imported::ImportedDocument>),
    form("rtproof/kernel-bisect/1", "kernel-bisect", of::<kernel::KernelBisected>),
    form("rtproof/kernel-bisect-next/1", "kernel-bisect-next", of::<kernel::KernelBisectNext>),
    form("rtproof/kernel-boot/1", "kernel-boot", of::<kernel::Booted>),
    form("rtproof/kernel-compare/1", "kernel-compare", of::<kernel::KernelsCompared>),
    form("rtproof/kernel-build/1", "kernel-build", of::<kernel::BuiltKernel>),
    form("rtproof/kernel-build-test/1", "kernel-build-test", of::<kernel::BuildTests>),
    form("rtproof/kernel-config/1", "kernel-config", of::<kernel::Configured>),
    form("rtproof/kernel-find/1", "kernel-find", of::<kernel::Offers>),
    form("rtproof/kernel-rebase/1", "kernel-rebase", of::<kernel::Rebased>),
    form("rtproof/measure/1", "measure", of::<Answered<'static, measure::Index>>),
    form("rtproof/measure-plan/1", "measure-plan", of::<measure::MeasurePlan>),
    form("rtproof/new/1", "new", of::<commands::NewDocument<'static>>),
    form("rtproof/record/1", "record", of::<rtproof_record::export::RecordDocument<'static>>),
    form("rtproof/report/2", "report", of::<Answered<'static, Report>>),
    form("rtproof/run/1", "run", of::<rtproof_results::launch::Launched>),
    form("rtproof/run-plan/1", "run-plan", of::<rtproof_results::launch::LaunchPlan>),
    form("rtproof/tune-applied/1", "tune-applied", of::<Answered<'static, tune::Applied>>),
    form("rtproof/tune-confirmed/1", "tune-confirmed", of::<undo::Confirmed>),
    form("rtproof/tune-drift/1", "tune-drift", of::<rtproof_run::tune::watch::Drift>),
    form(
        "rtproof/effects/1",
        "tune-effects",
        of::<Answered<'static, apply::TuneProveDocument<'static>>>,
    ),
    form("rtproof/tune-exported/1", "tune-exported", of::<tune::ExportedDocument>),
    form("rtproof/plan/1", "tune-plan", of::<Answered<'static, tune::PlanDocument>>),
    form("rtproof/tune-repeated/1", "tune-repeated", of::<persist::RepeatDocument>),
    form("rtproof/tune-status/1", "tune-status", of::<Answered<'static, tune::TuneStatus>>),
    form("rtproof/tune-undone/1", "tune-undone", of::<Answered<'static, tune::Undone>>),
    form("rtproof/verify/1", "tune-verify", of::<Answered<'static, tune::VerifiedDocument>>),
    form("rtproof/watch/1", "watch", of::<rtproof_results::watch::WatchFrame>),
];

// Where errors, warnings and questions go. They name files, records and machines of others: their
// words must not command the terminal.

pub fn stderr_line(words: &str) -> io::Result<()> {
    stderr_write(&format!("{words}\n"))
}

/// Writes words as they are, e.g. a question.
pub fn stderr_write(words: &str) -> io::Result<()> {
    rewrite("", words)
}

/// Writes words after a sequence of our own, which clears the line.
pub(crate) fn rewrite(before: &'static str, words: &str) -> io::Result<()> {
    let mut stderr = anstream::stderr().lock();
    stderr.write_all(format!("{before}{}", text::harmless_text(words)).as_bytes())?;
    stderr.flush()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_definition_is_consistent() {
        super::command().debug_assert();
    }

    /// Lines of a help that are commands of ours, of a command and of all below it.
    fn examples(command: &clap::Command) -> Vec<String> {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let own = help.lines().map(str::trim).filter(|line| line.starts_with("rtproof "));
        let own = own.map(|line| line.split([';', '|', '>', '#', '&']).next().unwrap_or(line));
        let own: Vec<String> = own.map(|line| line.trim().to_owned()).collect();
        own.into_iter().chain(command.get_subcommands().flat_map(examples)).collect()
    }

    /// As a shell splits a line: at spaces that are not in quotes.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut is_quoted) = (vec![String::new()], false);
        for letter in line.chars() {
            match (letter, words.last_mut()) {
                ('\'' | '"', _) => is_quoted = !is_quoted,
                (' ', _) if !is_quoted => words.push(String::new()),
                (letter, Some(word)) => word.push(letter),
                (_, None) => {}
            }
        }
        words
    }

    #[test]
    fn no_help_shows_a_link_of_its_source() {
        fn helps(command: &mut clap::Command, all: &mut Vec<String>) {
            all.push(command.render_long_help().to_string());
            command.get_subcommands_mut().for_each(|it| helps(it, all));
        }
        let mut all = Vec::new();
        helps(&mut super::command(), &mut all);
        let with_links: Vec<&String> = all.iter().filter(|help| help.contains("[`")).collect();
        assert!(all.len() > 30 && with_links.is_empty(), "{with_links:#?}");
    }

    #[test]
    fn the_examples_of_every_help_are_understood() {
        let examples = examples(&super::command());
        assert!(examples.len() > 30, "{examples:?}");
        for example in examples {
            if let Err(error) = super::command().try_get_matches_from(words(&example)) {
                panic!("{example}: {error}");
            }
        }
    }
}
