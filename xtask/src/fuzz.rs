//! `cargo xtask fuzz`: builds the fuzz targets with the compiler's coverage, on the stable
//! toolchain, and runs each for a minute. What was found worth keeping is kept outside the tree, so
//! that each run goes on where the last one ended; a crash is an error and its input is in
//! `target/fuzz`.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
};

use anyhow::{Context, Result, ensure};

/// Coverage as libFuzzer wants it: what `cargo fuzz` asks the compiler for, without the sanitizers,
/// which take a nightly one. There is no unsafe code in what is fuzzed.
const RUSTFLAGS: &str = "-C passes=sancov-module -C llvm-args=-sanitizer-coverage-level=4 \
                         -C llvm-args=-sanitizer-coverage-inline-8bit-counters \
                         -C llvm-args=-sanitizer-coverage-pc-table \
                         -C llvm-args=-sanitizer-coverage-trace-compares";
/// Targets run at the same time.
const JOBS: usize = 2;

/// Runs the targets whose name has `only` in it.
pub(crate) fn run(seconds: u64, only: &str) -> Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let triple = host_triple()?;
    let built = root.join("target/fuzz-build");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--profile", "fuzz", "--package", "rtproof-fuzz"])
        .args(["--target", &triple, "--target-dir"])
        .arg(&built)
        // Without a target the flags would reach build scripts, too.
        .env("RUSTFLAGS", RUSTFLAGS)
        .current_dir(&root)
        .status()
        .context("cargo cannot run")?;
    ensure!(status.success(), "the fuzz targets do not build: a C++ compiler is needed, too");
    let mut names: Vec<String> = fs::read_dir(root.join("fuzz/src/bin"))?
        .filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_str()?.replace('_', "-")))
        .filter(|name| name.contains(only))
        .collect();
    names.sort_unstable();
    ensure!(!names.is_empty(), "no fuzz target has \"{only}\" in its name");
    let mut failed = Vec::new();
    for names in names.chunks(JOBS) {
        let started: Result<Vec<_>> = names
            .iter()
            .map(|name| {
                let binary = built.join(format!("{triple}/fuzz/fuzz-{name}"));
                Ok((name, start(&root, &binary, name, seconds)?))
            })
            .collect();
        for (name, (mut child, log)) in started? {
            let is_good = child.wait()?.success();
            // What a target kept in memory is of no use without it.
            for left in [name.clone(), format!("{name}-{}", child.id())] {
                let path = format!("/dev/shm/rtproof-fuzz-{left}");
                let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
            }
            let text = fs::read_to_string(&log).unwrap_or_default();
            let last = text.lines().rev().find(|line| line.starts_with("Done ")).unwrap_or("");
            let word = if is_good { "ok    " } else { "FAILED" };
            writeln!(std::io::stdout(), "{word} fuzz {name}: {last}")?;
            if !is_good {
                failed.push(format!("{name}: see {}", log.display()));
            }
        }
    }
    ensure!(failed.is_empty(), "fuzz targets found something:\n{}", failed.join("\n"));
    Ok(ExitCode::SUCCESS)
}

fn start(root: &Path, binary: &Path, name: &str, seconds: u64) -> Result<(Child, PathBuf)> {
    let work = root.join("target/fuzz").join(name);
    let corpus = cache()?.join(name);
    fs::create_dir_all(&work)?;
    fs::create_dir_all(&corpus)?;
    let log = work.join("log.txt");
    // Something real to start from.
    let seeds = match name {
        "capture" => root.join("fixtures/machines"),
        _ => root.join("fuzz/seeds").join(name),
    };
    let child = Command::new(binary)
        .arg(format!("-max_total_time={seconds}"))
        .args(["-timeout=10", "-rss_limit_mb=2048", "-max_len=65536", "-print_final_stats=1"])
        .arg(format!("-artifact_prefix={}/", work.display()))
        .arg(&corpus)
        .args(seeds.is_dir().then_some(seeds))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&log)?)
        .spawn()
        .with_context(|| format!("{}: cannot run", binary.display()))?;
    Ok((child, log))
}

/// Folder of the inputs that are worth keeping.
fn cache() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("RTPROOF_FUZZ_CACHE") {
        return Ok(path.into());
    }
    let home = std::env::var_os("HOME").context("HOME is not set: set RTPROOF_FUZZ_CACHE")?;
    Ok(Path::new(&home).join(".cache/rtproof-fuzz"))
}

fn host_triple() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("rustc cannot run")?;
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.context("rustc -vV names no host")?.to_owned())
}
