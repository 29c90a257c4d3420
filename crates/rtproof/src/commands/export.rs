//! `rtproof export`: a record in the formats of other tools.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use anyhow::Context;
use rtproof_record::export;

use super::report::open_whole;
use crate::exit;

/// Arguments of `export`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof export run.rtproof --format csv --table seconds > seconds.csv
  rtproof export run.rtproof --format hdr -o run.hlog")]
pub struct Args {
    /// The record
    pub record: PathBuf,

    /// Format: json (everything), csv (one table), hdr (HdrHistogram interval log)
    #[arg(long)]
    pub format: String,

    /// Table, for formats that hold one; a wrong name lists them
    #[arg(long)]
    pub table: Option<String>,

    /// File to write; default: stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// A file that is not a sealed record, an unknown format or table, an output that cannot be
/// written.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    // Wrong words are found before anything is opened.
    export::format(&args.format).map_err(|error| exit::usage(error.to_string()))?;
    let opened = open_whole(&args.record)?;
    let mut to: Box<dyn Write> = match &args.output {
        Some(path) => Box::new(
            std::fs::File::create(path)
                .with_context(|| format!("{}: cannot write", path.display()))?,
        ),
        None => Box::new(io::stdout().lock()),
    };
    export::export(&opened, &args.format, args.table.as_deref(), &mut to)?;
    Ok(exit::ACCEPTED)
}
