//! `rtproof-lab`: runs cases, lists them, opens a shell in a guest. Also as `cargo xtask lab`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test program talks to its caller")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use rtproof_guest::{Arch, Emulator};
use rtproof_lab::{
    binaries::Binaries,
    cache::Cache,
    case::{Case, Tier},
    cases, disk, kernels,
    run::Bench,
    schedule::{self, Job},
    shell,
};

/// Exit code of a stage that cannot run on this machine (scripts/test.sh).
const CANNOT_RUN: u8 = 3;

/// Real kernels under QEMU that run rtproof.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask lab")]
struct Cli {
    #[command(subcommand)]
    job: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run cases.
    Run {
        /// Part of a case's name; default: all of the tiers.
        names: Vec<String>,
        /// Tiers to run; default: 1, or all when names are given.
        #[arg(long, value_enum)]
        tier: Vec<Tier>,
        /// Run the mutations as well, which must fail; those of tier 1 with tier 2.
        #[arg(long)]
        mutations: bool,
        /// Host threads that guests may use at once; default: the cores.
        #[arg(long)]
        jobs: Option<u32>,
        /// Keep the files of cases that went well.
        #[arg(long)]
        keep: bool,
        /// Begin no further case after so many seconds, and name those left out.
        #[arg(long, value_name = "SECONDS")]
        within: Option<u64>,
        /// Take rtproof and lab-plant for x86-64 from a folder, as built for this machine; default:
        /// build them, static.
        #[arg(long, value_name = "FOLDER")]
        programs: Option<PathBuf>,
    },
    /// List the cases with their tiers, machines and mutations.
    List,
    /// Boot a kernel to a shell, with rtproof in its PATH and /host shared.
    Shell(shell::Args),
    /// Write the capture of each machine to fixtures/machines.
    Capture,
    /// Build the static rtproof for a processor and print its path.
    Build {
        /// Processor.
        arch: Arch,
    },
    /// Say what the cache holds and remove what is no longer used.
    Cache,
}

fn main() -> Result<ExitCode> {
    match Cli::parse().job {
        Task::Run { names, tier, mutations, jobs, keep, within, programs } => {
            let until = within.map(|seconds| Instant::now() + Duration::from_secs(seconds));
            run(&names, &tier, mutations, jobs, keep, until, programs.as_deref())
        }
        Task::List => {
            list();
            Ok(ExitCode::SUCCESS)
        }
        Task::Shell(args) => shell::run(&args, &lab_dir()).map(|()| ExitCode::SUCCESS),
        Task::Capture => capture(),
        Task::Build { arch } => {
            println!("{}", Binaries::build(arch, &Cache::open()?)?.rtproof.display());
            Ok(ExitCode::SUCCESS)
        }
        Task::Cache => {
            let cache = Cache::open()?;
            prune(&cache)?;
            print!("{}", cache_summary(&cache)?);
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Folder of runs, in the target folder.
fn lab_dir() -> PathBuf {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| lab.with_file_name("target"));
    std::path::absolute(target.join("lab")).unwrap_or_else(|_| target.join("lab"))
}

fn run(
    names: &[String],
    tiers: &[Tier],
    mutations: bool,
    jobs: Option<u32>,
    keep: bool,
    until: Option<Instant>,
    programs: Option<&Path>,
) -> Result<ExitCode> {
    let tiers = match (tiers, names) {
        ([], []) => &[Tier::One][..],
        ([], _) => &[Tier::One, Tier::Two, Tier::Three][..],
        _ => tiers,
    };
    let is_named =
        |case: &Case| names.is_empty() || names.iter().any(|part| case.name.contains(part));
    let mut work: Vec<Job> = Vec::new();
    for case in cases::all().into_iter().filter(is_named) {
        // Mutations of tier 1 wait for tier 2.
        if mutations && tiers.contains(&case.tier.max(Tier::Two)) {
            work.extend(Job::mutations(&case));
        }
        if tiers.contains(&case.tier) {
            work.push(Job::case(case));
        }
    }
    if work.is_empty() {
        bail!("no case matches; `cargo xtask lab list` lists them");
    }
    if let Err(error) = Emulator::installed(Arch::X86_64) {
        println!("lab: cannot run here: {error:#}");
        return Ok(ExitCode::from(CANNOT_RUN));
    }
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let slots = jobs.unwrap_or(cores).max(1);
    let began = Instant::now();
    let bench = Bench::open(lab_dir(), programs)?;
    println!(
        "lab: {} runs, programs ready after {:.0} s",
        work.len(),
        began.elapsed().as_secs_f64()
    );
    let began = Instant::now();
    let books = schedule::run_all(&bench, work, slots, keep, until);
    if let Err(error) = prune(&bench.cache) {
        eprintln!("lab: {error:#}");
    }
    let results = bench.dir.join("results.json");
    fs::write(&results, serde_json::to_string_pretty(&books.json())?)
        .with_context(|| format!("{}: write", results.display()))?;
    println!(
        "lab: {} as they must be, {} not, {} guests started twice, {:.0} s; {}",
        books.passed,
        books.failed,
        books.retries,
        began.elapsed().as_secs_f64(),
        results.display()
    );
    if !books.left_out.is_empty() {
        let (count, names) = (books.left_out.len(), books.left_out.join(", "));
        println!("lab: the time is up, {count} not begun: {names}");
    }
    Ok(if books.all_well() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn list() {
    for case in cases::all() {
        println!("T{} {}: {}", case.tier as u8 + 1, case.name, case.shows);
        for boot in &case.boots {
            println!("     on {}", boot.machine.describe());
        }
        for mutation in &case.mutations {
            println!("     mutation: {}; \"{}...\" must fail", mutation.says, mutation.fails);
        }
    }
}

/// Captures every machine of the family `capture` anew.
fn capture() -> Result<ExitCode> {
    let bench = Bench::open(lab_dir(), None)?;
    let jobs = cases::all().into_iter().filter(|case| case.name.starts_with("capture/"));
    let books = schedule::run_all(&bench, jobs.map(Job::case).collect(), 2, false, None);
    // They compare with what is committed: one that has changed fails, and is written too.
    for (from, to) in cases::captures() {
        let from = bench.dir.join("reports").join(from);
        let text =
            fs::read_to_string(&from).with_context(|| format!("{}: read", from.display()))?;
        fs::write(&to, text).with_context(|| format!("{}: write", to.display()))?;
        println!("{}", to.display());
    }
    println!("then: SNAPSHOTS=overwrite cargo test -p rtproof --test it machines::");
    Ok(if books.retries > 2 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Removes what is no longer used; the pinned packages and the disk image stay.
fn prune(cache: &Cache) -> Result<()> {
    let mut known = kernels::known_packages();
    known.insert(disk::key());
    cache.prune(&known)
}

/// What the cache holds: entries and MiB of each kind.
fn cache_summary(cache: &Cache) -> Result<String> {
    let output = std::process::Command::new("du")
        .args(["--block-size=1M", "--max-depth=1", "--"])
        .arg(cache.dir())
        .output()
        .context("run du")?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().map(|line| line.replacen('\t', " MiB  ", 1) + "\n").collect())
}
