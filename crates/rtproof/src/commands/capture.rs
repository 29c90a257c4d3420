//! `rtproof capture`: the machine as one text file, to be checked elsewhere, compared and kept.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;
use rtproof_host::{
    Capture, Root,
    capture::{CAPTURE_BYTES_MAX, Origin},
    facts::app::Target,
};
use rtproof_run::file;
use rustix::fs::Mode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{exit, print::Text, root::open_root};

const SCHEMA: &str = "rtproof/capture/1";

/// Arguments of `capture`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Host names, users, network addresses, serial numbers and ids are replaced or left out. Still,
look at the file before you give it away.

Examples:
  rtproof capture machine.txt
  rtproof check --root machine.txt
  rtproof capture --unit arm.service arm.txt && rtproof check --root arm.txt --unit arm.service
  ssh plc7 rtproof capture - > plc7.txt")]
pub struct Args {
    /// File to write; `-` for stdout
    pub file: PathBuf,

    /// Capture a captured machine: a folder with its /proc, /sys ..., or a file
    #[arg(long, value_name = "PATH")]
    pub root: Option<PathBuf>,

    /// Include the application with this process id: `check --pid` then works on the file
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Option<u32>,

    /// Include the application that runs as this systemd unit
    #[arg(long, value_name = "NAME", conflicts_with = "pid")]
    pub unit: Option<String>,

    /// Replace an existing file
    #[arg(long)]
    pub force: bool,

    /// Keep names, addresses and ids as they are
    #[arg(long)]
    pub raw: bool,

    /// Print what was captured as JSON
    #[arg(long)]
    pub json: bool,
}

/// The JSON form: what was captured.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Captured<'a> {
    schema: &'static str,
    file: &'a Path,
    /// On the machine itself, or from a folder.
    from: &'static str,
    /// Files and folders in it.
    entries: usize,
    bytes: usize,
    /// Names replaced or left out; `null`: kept.
    redacted: Option<usize>,
}

fn take_with(root: &Root, target: &Target) -> anyhow::Result<Capture> {
    Capture::take_with(root, target).map_err(|error| exit::usage(error.to_string()))
}

/// Runs the command.
///
/// # Errors
/// Usage: no such application, a root that is no machine, JSON and the capture both on stdout. Else
/// a file that is there or cannot be written.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let to_stdout = args.file == Path::new("-");
    if to_stdout && args.json {
        return Err(exit::usage(
            "--json and `-` both write to stdout: name a file, or leave --json",
        ));
    }
    let root = open_root(args.root.as_deref())?;
    if !to_stdout {
        check_free(&args.file, args.force)?;
    }
    if args.raw {
        // It holds what only root may read of the machine.
        rustix::process::umask(Mode::RWXG | Mode::RWXO);
    }
    let mut capture = match (args.pid, &args.unit) {
        (Some(pid), _) => take_with(&root, &Target::Pid(pid))?,
        (None, Some(unit)) => take_with(&root, &Target::Unit(unit.clone()))?,
        (None, None) => Capture::take(&root),
    };
    let redacted = (!args.raw).then(|| capture.redact());
    let text = capture.to_text();
    anyhow::ensure!(
        text.len() as u64 <= CAPTURE_BYTES_MAX,
        "the capture has {} bytes, at most {CAPTURE_BYTES_MAX} could be read again; check this \
         machine in place",
        text.len()
    );
    if to_stdout {
        let mut stdout = io::stdout().lock();
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            // A reader that has seen enough is not an error.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            written => written.context("stdout: the capture cannot be written")?,
        }
    } else {
        file::write_whole(&args.file, |to| Ok(to.write_all(text.as_bytes())?))
            .with_context(|| format!("{}: the capture cannot be written", args.file.display()))?;
    }
    let captured = Captured {
        schema: SCHEMA,
        file: &args.file,
        from: match capture.origin() {
            Origin::Live { .. } => "live",
            Origin::Folder => "folder",
        },
        entries: capture.entry_count(),
        bytes: text.len(),
        redacted,
    };
    // Progress that cannot be shown is no reason to fail.
    let _ = tell(&captured);
    Text::new(args.json).print_json(&captured)?;
    Ok(exit::ACCEPTED)
}

/// A capture may be evidence: it is not replaced without being asked for. Pipes and terminals are.
fn check_free(path: &Path, force: bool) -> anyhow::Result<()> {
    anyhow::ensure!(!path.is_dir(), "{}: a folder; name a file in it", path.display());
    anyhow::ensure!(
        force || !path.is_file(),
        "{}: is there already; name another file, or replace it with --force",
        path.display()
    );
    Ok(())
}

fn tell(captured: &Captured<'_>) -> io::Result<()> {
    let Captured { file, entries, bytes, redacted, .. } = captured;
    let file = if *file == Path::new("-") { "stdout".into() } else { file.display().to_string() };
    let names = match redacted {
        Some(number) => format!("{number} names replaced or left out"),
        None => "names kept".to_owned(),
    };
    crate::stderr::line(&format!("{file}: {entries} entries, {bytes} bytes; {names}"))
}
