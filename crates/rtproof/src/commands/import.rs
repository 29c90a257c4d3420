//! `rtproof import`: results of other tools as records.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::Context;
use rtproof_record::import::{self, Hints, Imported};
use rtproof_report::{imported::Document, text};
use rtproof_run::parse;

use crate::{exit, print::Text};

/// Arguments of `import`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof import cyclictest.log --interval 200us --duration 15m
  rtproof import results.json -o rig.rtproof
  rtproof import *.log --show
  ssh rig cyclictest -S -p 80 -D 60 -h 400 -q | rtproof import - -o rig.rtproof")]
pub struct Args {
    /// Result files, - for standard input; the format is detected from the content
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Record to write; for several files the folder for their records [default: FILE.rtproof]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Show what is in the files, write no record
    #[arg(long, conflicts_with = "output")]
    pub show: bool,

    /// Format, where the content does not tell; a wrong name lists them
    #[arg(long)]
    pub format: Option<String>,

    /// Command line that made the file, where it is not in it
    #[arg(long, value_name = "TEXT")]
    pub command: Option<String>,

    /// Period of the first thread, where the file does not say it
    #[arg(long, value_name = "TIME", value_parser = parse::time)]
    pub interval: Option<u64>,

    /// How long it measured, where the file does not say it
    #[arg(long, value_name = "TIME", value_parser = parse::time)]
    pub duration: Option<u64>,

    /// Unit of the values, where the file does not say it, e.g. 1ns, 1us
    #[arg(long, value_name = "TIME", value_parser = parse::time)]
    pub unit: Option<u64>,

    /// Print what was imported as JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// Usage: an unknown format. Else a file that no importer knows or that is damaged, and a record
/// that cannot be written. Nothing is written unless all files can be read.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let mut all = Vec::with_capacity(args.files.len());
    for path in &args.files {
        let imported =
            import::read_file(path, &hints(args, path)).map_err(|error| match error {
                import::ImportError::UnknownFormat { .. } => exit::usage(error.to_string()),
                error => error.into(),
            })?;
        all.push((path, imported));
    }
    let text = Text::new(args.json);
    let mut documents = Vec::with_capacity(all.len());
    for (path, imported) in &all {
        let record = match args.show {
            true => None,
            false => Some(write(&target(args, path), imported)?),
        };
        text.print(|to| text::imported(to, imported, record.as_deref()))?;
        documents.push(Document::of(imported, record));
    }
    text.print_json(&documents)?;
    Ok(exit::ACCEPTED)
}

fn hints(args: &Args, path: &Path) -> Hints {
    Hints {
        name: path.display().to_string(),
        format: args.format.clone(),
        command: args.command.clone(),
        period_ns: args.interval,
        duration_ns: args.duration,
        unit_ns: args.unit,
    }
}

/// Where the record of a file goes.
fn target(args: &Args, path: &Path) -> PathBuf {
    let path = if path == Path::new("-") { Path::new("stdin") } else { path };
    let mut name: OsString = path.file_name().unwrap_or(path.as_os_str()).into();
    name.push(".rtproof");
    match &args.output {
        Some(output) if output.is_dir() || args.files.len() > 1 => output.join(name),
        Some(output) => output.clone(),
        None => name.into(),
    }
}

fn write(path: &Path, imported: &Imported) -> anyhow::Result<PathBuf> {
    let command: Vec<String> = std::env::args().collect();
    let finished = import::store(path, imported, env!("CARGO_PKG_VERSION"), &command)?;
    finished.seal().with_context(|| format!("{}: not sealed", path.display()))?;
    Ok(path.to_owned())
}
