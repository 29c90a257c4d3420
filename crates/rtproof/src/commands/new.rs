//! `rtproof new`: a small real-time application to begin with.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use rtproof_run::new::{self, Class, Language, Name, Project, Request};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{exit, next, print::Text};

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
pub struct Args {
    /// Name of the folder, the program and the unit: a-z, 0-9, - and _
    pub name: Name,

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
pub(crate) struct Made<'a> {
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
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let request = Request {
        name: args.name.clone(),
        language: match args.language {
            LanguageArg::C => Language::C,
            LanguageArg::Cpp => Language::Cpp,
            LanguageArg::Rust => Language::Rust,
        },
        class: if args.deadline { Class::Deadline } else { Class::Fifo },
        parent: args.dir.clone(),
    };
    let project = new::make(&request)?;
    let text = Text::new(args.json);
    text.print(|to| show(to, &project))?;
    text.print_json(&Made {
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
