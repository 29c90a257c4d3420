//! Commands that read or write one file: `report`, `import`, `export`, `capture`.

use std::{
    ffi::OsString,
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;
use rustix::fs::Mode;
use schemars::JsonSchema;
use serde::Serialize;

use rtproof_host::{
    Capture, Root,
    capture::form::{CAPTURE_BYTES_MAX, CaptureOrigin},
    door,
    facts::app::Target,
};
use rtproof_judge::{
    Integrity, Report,
    compare::{Reference, Side},
    moving::Moving,
};
use rtproof_record::{
    Opened, Run, SealState,
    export::{self, ExportError},
    import::{self, Hints, Imported},
};
use rtproof_render::{page, sections::imported::ImportedDocument};
use rtproof_results::{
    Answer,
    record_state::{banner, integrity, open_whole},
};
use rtproof_run::{
    compare::{FileLoader, folder},
    experiment, parse,
};
use rtproof_stats::moving::Lengths;

use crate::exit::TextOutput;
use crate::{MovingArgs, answers, exit, next, open_root};

// `rtproof capture`: the machine as one text file, to be checked elsewhere, compared and kept.

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
pub struct CaptureArgs {
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
pub fn run_capture(args: &CaptureArgs) -> anyhow::Result<u8> {
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
        door::write_whole(&args.file, |to| Ok(to.write_all(text.as_bytes())?))
            .with_context(|| format!("{}: the capture cannot be written", args.file.display()))?;
    }
    let captured = Captured {
        schema: SCHEMA,
        file: &args.file,
        from: match capture.origin() {
            CaptureOrigin::Live { .. } => "live",
            CaptureOrigin::Folder => "folder",
            CaptureOrigin::Files => "files",
        },
        entries: capture.entry_count(),
        bytes: text.len(),
        redacted,
    };
    // Progress that cannot be shown is no reason to fail.
    let _ = print_captured(&captured);
    TextOutput::new(args.json).print_json(&captured)?;
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

fn print_captured(captured: &Captured<'_>) -> io::Result<()> {
    let Captured { file, entries, bytes, redacted, .. } = captured;
    let file = if *file == Path::new("-") { "stdout".into() } else { file.display().to_string() };
    let names = match redacted {
        Some(number) => format!("{number} names replaced or left out"),
        None => "names kept".to_owned(),
    };
    crate::stderr_line(&format!("{file}: {entries} entries, {bytes} bytes; {names}"))
}

// `rtproof export`: a record in the formats of other tools.

/// Arguments of `export`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof export run.rtproof --format csv --table seconds > seconds.csv
  rtproof export run.rtproof --format csv --table moving --moving 10s > moving.csv
  rtproof export run.rtproof --format hdr -o run.hlog")]
pub struct ExportArgs {
    /// The record
    pub record: PathBuf,

    /// Format: json (everything), csv (one table), hdr (HdrHistogram interval log), cyclictest
    /// (its histogram, for gnuplot), junit and tap (for CI)
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
pub fn run_export(args: &ExportArgs) -> anyhow::Result<u8> {
    // A wrong format or table is reported before any file is opened.
    export::choose(&args.format, args.table.as_deref())
        .map_err(|error| exit::usage(error.to_string()))?;
    let lengths = args.moving.lengths();
    let is_moving = args.format == "csv" && args.table.as_deref() == Some(export::MOVING_TABLE);
    if lengths != Lengths::default() && !is_moving {
        let why = "--moving and --half-life are of one table; give --format csv --table moving";
        return Err(exit::usage(why));
    }
    let output = args.output.as_deref().filter(|path| path.as_os_str() != "-");
    let target = output.unwrap_or("/dev/stdout".as_ref()); // a shell may append
    door::check_target(&args.record, target)?;
    let mut opened = open_whole(&args.record)?;
    if matches!(args.format.as_str(), "junit" | "tap") && opened.judgement.is_some() {
        // By the rules of today, as `report` shows it.
        let report = Report::new(&opened.run, &integrity(&opened.state));
        opened.judgement = Some(rtproof_run::prove::engine::judgement(&report));
    }
    let write = |to: &mut dyn Write| {
        let done = match is_moving {
            true => export::export_moving(&opened, lengths, to),
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
        Some(path) => door::write_whole(path, write)
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

// `rtproof import`: results of other tools as records.

/// Arguments of `import`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof import cyclictest.log --interval 200us --duration 15m
  rtproof import results.json -o rig.rtproof
  rtproof import *.log --show
  ssh rig cyclictest -S -p 80 -D 60 -h 400 -q | rtproof import - -o rig.rtproof")]
pub struct ImportArgs {
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
pub fn run_import(args: &ImportArgs) -> anyhow::Result<u8> {
    let mut all = Vec::with_capacity(args.files.len());
    for path in &args.files {
        let imported =
            import::read_file(path, &hints(args, path)).map_err(|error| match error {
                import::ImportError::UnknownFormat { .. } => exit::usage(error.to_string()),
                error => error.into(),
            })?;
        all.push((path, imported));
    }
    let text = TextOutput::new(args.json);
    let mut documents = Vec::with_capacity(all.len());
    for (path, imported) in &all {
        let record = match args.show {
            true => None,
            false => Some(write(&target(args, path), imported)?),
        };
        text.print(|to| page::imported_text(to, imported, record.as_deref()))?;
        documents.push(ImportedDocument::of(imported, record));
    }
    text.print_json(&documents)?;
    Ok(exit::ACCEPTED)
}

fn hints(args: &ImportArgs, path: &Path) -> Hints {
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
fn target(args: &ImportArgs, path: &Path) -> PathBuf {
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

// `rtproof report`: a record shown again, judged anew from the file alone.

/// Arguments of `report`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof report prove-pi5-20261121T020304.rtproof
  rtproof report prove-pi5-20261121T020304.rtproof --html again.html
  rtproof report prove-pi5-20261121T020304.rtproof --moving 10s --half-life 5s
  rtproof report prove-pi5-20261121T020304.rtproof --reference machines/
  rtproof report -v prove-pi5-20261121T020304.rtproof")]
pub struct ReportArgs {
    /// The record
    pub record: PathBuf,

    /// Write the HTML report there
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Rank the machine among the runs in this folder, as far as they are like its own
    #[arg(long, value_name = "DIR")]
    pub reference: Option<PathBuf>,

    /// Lengths of windows
    #[command(flatten)]
    pub moving: MovingArgs,

    /// Show a record that was changed after it was sealed; it is marked as such
    #[arg(long)]
    pub accept_altered: bool,

    /// Print the report as JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// A file that is not a record, or was changed after it was sealed; the record as `--html` (usage).
pub fn run_report(args: &ReportArgs) -> anyhow::Result<u8> {
    if let Some(path) = &args.html {
        door::check_target(&args.record, path)?;
    }
    // Judged as a sealed one while it is not yet known whether it is: of a large file that is read,
    // it nearly always is.
    let judged = |run: &Run| Report::new(run, &Integrity::Sealed);
    let (opened, judged) = rtproof_record::read_shown_with(&args.record, judged)?;
    let banner = banner(&args.record, &opened, args.accept_altered)?;
    let lengths = args.moving.lengths();
    if let Some(imported) = &opened.run.imported {
        if lengths != Lengths::default() {
            let why = "another tool's result holds no seconds to make moving statistics of";
            return Err(exit::usage(format!("--moving: {}: {why}", args.record.display())));
        }
        if args.reference.is_some() {
            let why = "only records of rtproof's own runs are ranked by report; of other tools: \
                       rtproof compare --reference";
            return Err(exit::usage(format!("--reference: {}: {why}", args.record.display())));
        }
        return self::imported(args, imported, banner.as_deref());
    }
    let mut report = judged.unwrap_or_else(|| Report::new(&opened.run, &integrity(&opened.state)));
    if lengths != Lengths::default() {
        report.moving = moving(&opened.run, lengths)?;
    }
    if let Some(path) = &args.reference {
        if opened.run.effects.is_some() {
            let why = "an experiment changes settings while it runs; rank a run of `prove`";
            return Err(exit::usage(format!("--reference: {}: {why}", args.record.display())));
        }
        let (others, unread) = folder(&FileLoader::default(), path)?;
        let source = args.record.display().to_string();
        let run = Side::of_run(&opened.run, "this run", &source);
        report.reference = vec![Reference::of(&run, &others, &unread)];
    }
    let banner = match banner {
        None => rejudged(&opened, &report),
        some => some,
    };
    let text = TextOutput::new(args.json);
    let answer = match &opened.run.effects {
        None => Answer::of_report(&report, next::of_report(&report, &args.record)),
        // An experiment compares settings: there is no budget to judge against.
        Some(effects) => {
            let cut_short = experiment::cut_short(&opened.run);
            answers::experiment_answer(effects, cut_short.as_deref(), |_| None)
        }
    };
    text.print(|to| {
        page::banner(to, banner.as_deref())?;
        page::answer_text(to, &answer)?;
        page::machine_head(to, &report.machine, &report.findings)?;
        page::measured(to, &report)?;
        if crate::is_verbose() {
            page::distribution(to, &report)?;
        }
        if crate::is_verbose() || lengths != Lengths::default() {
            page::moving(to, &report, lengths != Lengths::default())?;
        }
        page::spikes_of(to, &opened.run, &report)?;
        page::reference(to, &report.reference)?;
        match &opened.run.effects {
            None => page::verdict(to, &report)?,
            Some(effects) => rtproof_render::sections::effects::table_text(to, effects)?,
        }
        page::next_text(to, answer.next.as_deref())
    })?;
    text.print_json(&answer.clone().with(&report))?;
    if let Some(path) = &args.html {
        crate::write_html(path, &opened.run, &report, banner, answer.next.as_deref())?;
    }
    Ok(match &opened.run.effects {
        None => exit::of_report(&report),
        // As `experiment` ended.
        Some(effects) if experiment::is_open(effects) => exit::NOT_PROVEN,
        Some(_) if experiment::cut_short(&opened.run).is_some() => exit::NOT_PROVEN,
        Some(_) => exit::ACCEPTED,
    })
}

/// Moving statistics with lengths of the user's own.
fn moving(run: &Run, lengths: Lengths) -> anyhow::Result<Moving> {
    Moving::of(run, lengths).map_err(|error| {
        let is_short = rtproof_record::spans(run, Lengths::default())
            .is_ok_and(|spans| spans.step_ns <= 1_000_000_000);
        let more =
            "; `rtproof export --format csv --table moving` reads every second of a long run";
        exit::usage(format!("{error}{}", if is_short { "" } else { more }))
    })
}

/// A record of another tool's result: shown for what it is, there is nothing to judge.
fn imported(args: &ReportArgs, imported: &Imported, banner: Option<&str>) -> anyhow::Result<u8> {
    let text = TextOutput::new(args.json);
    text.print(|to| {
        page::banner(to, banner)?;
        page::imported_text(to, imported, None)
    })?;
    text.print_json(&ImportedDocument::of(imported, None))?;
    if let Some(path) = &args.html {
        crate::write_imported(path, imported, banner)?;
    }
    Ok(exit::ACCEPTED)
}

/// Says so when this version judges otherwise than the run did.
fn rejudged(opened: &Opened, report: &Report) -> Option<String> {
    let SealState::Sealed { .. } = opened.state else { return None };
    let stored = opened.judgement.as_ref()?;
    // Its sentences and figures are those of its version; what counts is the answer.
    let same = report.verdict.answer == stored.verdict.answer;
    let version = &opened.run.meta.tool_version;
    let banner = format!(
        "rtproof {} judges this record otherwise than rtproof {version} did at its end: {}",
        env!("CARGO_PKG_VERSION"),
        stored.summary
    );
    (!same).then_some(banner)
}
