//! `rtproof export`: a record in the formats of other tools.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use anyhow::Context;
use rtproof_record::export::{self, ExportError};
use rtproof_run::file;
use rtproof_stats::moving::Lengths;

use crate::{exit, moving::MovingArgs};
use rtproof_run::opened::open_whole;

/// Arguments of `export`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof export run.rtproof --format csv --table seconds > seconds.csv
  rtproof export run.rtproof --format csv --table moving --moving 10s > moving.csv
  rtproof export run.rtproof --format hdr -o run.hlog")]
pub struct Args {
    /// The record
    pub record: PathBuf,

    /// Format: json (everything), csv (one table), hdr (HdrHistogram interval log), cyclictest
    /// (its histogram, for gnuplot), junit (for CI)
    #[arg(long)]
    pub format: String,

    /// Table, for formats that hold one; a wrong name lists them
    #[arg(long)]
    pub table: Option<String>,

    /// Lengths of the table `moving`
    #[command(flatten)]
    pub moving: MovingArgs,

    /// File to write, - for stdout; default: stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// Usage: an unknown format or table, the record itself as output. Else a file that is not a sealed
/// record, or an output that cannot be written.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    // A wrong format or table is reported before any file is opened.
    export::choose(&args.format, args.table.as_deref())
        .map_err(|error| exit::usage(error.to_string()))?;
    let asked = args.moving.lengths();
    let is_moving = args.format == "csv" && args.table.as_deref() == Some(export::MOVING_TABLE);
    if asked != Lengths::default() && !is_moving {
        let why = "--moving and --half-life are of one table; give --format csv --table moving";
        return Err(exit::usage(why));
    }
    let output = args.output.as_deref().filter(|path| path.as_os_str() != "-");
    let target = output.unwrap_or("/dev/stdout".as_ref()); // a shell may append
    file::check_target(&args.record, target)?;
    let opened = open_whole(&args.record)?;
    let write = |to: &mut dyn Write| {
        let done = match is_moving {
            true => export::export_moving(&opened, asked, to),
            false => export::export(&opened, &args.format, args.table.as_deref(), to),
        };
        done.map_err(|error| match error {
            ExportError::Spans(error) => exit::usage(error.to_string()),
            // Without the words round it, which do not know the file.
            ExportError::Io(error) => error.into(),
            error => anyhow::Error::from(error),
        })
    };
    match output {
        Some(path) => file::write_whole(path, write)
            .with_context(|| format!("{}: the export cannot be written", path.display()))?,
        None => match write(&mut io::stdout().lock()) {
            // A reader that has seen enough is not an error.
            Err(error) if is_broken_pipe(&error) => {}
            written => written.context("stdout: the export cannot be written")?,
        },
    }
    Ok(exit::ACCEPTED)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
