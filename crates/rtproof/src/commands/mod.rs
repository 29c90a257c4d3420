//! The commands: arguments, what they do, how they end. To add one: its file, its `mod` and a row
//! of [`Command`]. Help, man pages, completions and the call follow from the row.

/// Makes the subcommands and their call from one list: help, name, arguments, function.
macro_rules! commands {
    ($command:ident: $($(#[$help:meta])* $name:ident($args:ty, $run:path),)*) => {
        /// The commands.
        #[derive(Clone, Debug, clap::Subcommand)]
        pub enum $command {
            $($(#[$help])* $name(Box<$args>),)*
        }

        impl $command {
            pub fn run(&self) -> anyhow::Result<u8> {
                match self {
                    $(Self::$name(args) => $run(args),)*
                }
            }
        }
    };
}

pub mod check;
pub(crate) mod check_explain;
mod check_proof;
pub mod compare;
pub mod experiment;
pub mod experiment_boots;
pub mod explain;
pub mod files;
pub mod kernel;
pub mod measure;
pub mod prove;
pub mod run;
pub mod tune;
pub mod watch;

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;
use schemars::JsonSchema;
use serde::Serialize;

use rtproof_run::new::{self, Language, LoopPolicy, Project, ProjectName, Request};

use crate::exit::TextOutput;
use crate::{Manners, exit, next};

/// Takes a Linux machine from unknown to proven real-time.
///
/// Checks the configuration, measures latency under load without leaving out a missed wake-up, and
/// accepts or refuses the machine with the evidence attached.
#[derive(Debug, clap::Parser)]
#[command(name = "rtproof", version, max_term_width = 100, propagate_version = true)]
#[command(after_help = "Exit codes: 0 accepted or done, 1 rtproof failed, 2 the machine failed, \
                        3 cannot tell, 64 usage.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,

    /// How the answer is shown.
    #[command(flatten)]
    pub manners: Manners,
}

commands! {
    Command:

    /// Check the machine, measure it under load, judge it: the main job
    Prove(prove::Args, prove::run),
    /// Measure a matrix of workloads, CPUs, policies, periods and loads; judges nothing
    Measure(measure::Args, measure::run),
    /// Check the configuration; changes nothing
    Check(check::Args, check::run),
    /// Change the configuration: plan, apply, undo, trial of boot parameters
    Tune(tune::Args, tune::run),
    /// Start a program as a real-time application; undo everything at its end
    Run(run::Args, run::run),
    /// Find which knob matters here: try changes in pairs of slices, undo them all
    Experiment(experiment::Args, experiment::run),
    /// Write the machine's configuration to one text file, to be checked anywhere
    Capture(files::CaptureArgs, files::run_capture),
    /// Watch the machine live: CPUs, latencies, each spike with its cause
    Watch(watch::Args, watch::run),
    /// Explain late wake-ups: of a run, another tool's trace, a running application
    Explain(explain::Args, explain::run),
    /// Run one of the kernel's own tracers (wakeup_rt, irqsoff, ...) and explain what it kept
    Trace(explain::TraceArgs, explain::run_trace),
    /// Compare runs: what differs, and whether the difference is decided
    Compare(compare::Args, compare::run),
    /// Judge a record again and show it
    Report(files::ReportArgs, files::run_report),
    /// Find, configure and build a real-time kernel
    Kernel(kernel::Args, kernel::run),
    /// Begin a real-time application: a small project, right from the start
    New(NewArgs, run_new),
    /// Convert results of other tools (cyclictest, rtla, oslat, ...) to records
    Import(files::ImportArgs, files::run_import),
    /// Write a record in another format: JSON, CSV, HdrHistogram log, cyclictest, JUnit, TAP
    Export(files::ExportArgs, files::run_export),
    /// Print completions of the command line for a shell
    Completions(CompletionsArgs, run_completions),
    /// Print the manual page of a command
    Man(ManArgs, run_man),
}

// `rtproof completions`: completions of the command line, for a shell.

/// Arguments of `completions`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof completions bash >/etc/bash_completion.d/rtproof
  rtproof completions zsh >/usr/local/share/zsh/site-functions/_rtproof
  rtproof completions fish >~/.config/fish/completions/rtproof.fish")]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

pub fn run_completions(args: &CompletionsArgs) -> anyhow::Result<u8> {
    exit::print_bytes(&script(args.shell))?;
    Ok(exit::ACCEPTED)
}

/// The script of a shell.
pub fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "rtproof", &mut script);
    script
}

// `rtproof man`: the manual pages, made from the same definitions as the help.

/// Arguments of `man`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof man | man -l -
  rtproof man tune apply | man -l -
  rtproof man prove >/usr/local/share/man/man1/rtproof-prove.1")]
pub struct ManArgs {
    /// The command whose page is printed, e.g. `tune apply`; default: rtproof itself
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// Usage: no such command. Else when stdout cannot be written.
pub fn run_man(args: &ManArgs) -> anyhow::Result<u8> {
    let wanted = args.command.join("-");
    let name = ["rtproof", &wanted].join("-");
    let name = name.trim_end_matches('-');
    let page = pages()?.into_iter().find(|(page, _)| page == name);
    let Some((_, page)) = page else {
        let given = args.command.join(" ");
        return Err(exit::usage(format!("`{given}` is no command; rtproof --help lists them")));
    };
    exit::print_bytes(&page)?;
    Ok(exit::ACCEPTED)
}

/// Every page: its name without the section, and its text.
///
/// # Errors
/// None that is known: pages are written to memory.
pub fn pages() -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let mut command = Cli::command();
    // Names of pages and usage lines of commands below others.
    command.build();
    let mut pages = Vec::new();
    page(&command, "", &mut pages)?;
    Ok(pages)
}

fn page(
    command: &clap::Command,
    above: &str,
    pages: &mut Vec<(String, Vec<u8>)>,
) -> anyhow::Result<()> {
    let name = format!("{above}{}", command.get_name());
    let shown = command.clone().display_name(name.clone());
    let mut text = Vec::new();
    let source = concat!("rtproof ", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(shown)
        .title(&name)
        .source(source)
        .render(&mut text)
        .with_context(|| format!("page {name}"))?;
    pages.push((name.clone(), text));
    let below = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let mut below = below.filter(|sub| sub.get_name() != "help");
    below.try_for_each(|sub| page(sub, &format!("{name}-"), pages))
}

// `rtproof new`: a small real-time application to begin with.

const SCHEMA: &str = "rtproof/new/1";

/// Arguments of `new`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof new arm-control --lang c
  cd arm-control && make && sudo make test

  rtproof new mixer --lang rust --deadline --dir /tmp

The project has locked memory and a loop on absolute time that counts overruns and skips them.
It has a mutex with priority inheritance, a queue without a lock for what the loop reports, and a
thread that waits for signals. It has marks for `rtproof measure --workload marks:PID`, a systemd
unit and a test (docs/new.md). The folder NAME must not exist.")]
pub struct NewArgs {
    /// Name of the folder, the program and the unit: a-z, 0-9, - and _
    pub name: ProjectName,

    /// Language
    #[arg(long = "lang", value_enum, value_name = "LANGUAGE")]
    pub language: LanguageArg,

    /// Make the loop SCHED_DEADLINE; default: SCHED_FIFO, priority 80
    #[arg(long)]
    pub deadline: bool,

    /// Make the folder NAME in DIR, which exists
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,

    /// Print what was made as JSON
    #[arg(long)]
    pub json: bool,
}

/// Language on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LanguageArg {
    /// C11, gcc or clang
    C,
    /// C++17, gcc or clang
    Cpp,
    /// Rust 1.63 or later
    Rust,
}

/// The JSON form: what was made.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct NewDocument<'a> {
    schema: &'static str,
    folder: &'a Path,
    /// Its files, relative to the folder.
    files: &'a [String],
    /// Commands that build, run and test it, in its folder.
    commands: &'a [String],
}

/// Runs the command.
///
/// # Errors
/// The folder exists, or cannot be written.
pub fn run_new(args: &NewArgs) -> anyhow::Result<u8> {
    let request = Request {
        name: args.name.clone(),
        language: match args.language {
            LanguageArg::C => Language::C,
            LanguageArg::Cpp => Language::Cpp,
            LanguageArg::Rust => Language::Rust,
        },
        class: if args.deadline { LoopPolicy::Deadline } else { LoopPolicy::Fifo },
        parent: args.dir.clone(),
    };
    let project = new::make(&request)?;
    let text = TextOutput::new(args.json);
    text.print(|to| show(to, &project))?;
    text.print_json(&NewDocument {
        schema: SCHEMA,
        folder: &project.folder,
        files: &project.files,
        commands: &project.commands,
    })?;
    Ok(exit::ACCEPTED)
}

fn show(to: &mut dyn Write, project: &Project) -> io::Result<()> {
    let Project { folder, files, commands: [build, start, test] } = project;
    writeln!(to, "{}: {} files; README.md says what each is", folder.display(), files.len())?;
    writeln!(to, "\n  cd {}", next::path(folder))?;
    writeln!(to, "  {build}\n  sudo {start}\n  sudo {test}")
}
