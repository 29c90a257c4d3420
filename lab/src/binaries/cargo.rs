//! A cargo build from within what cargo runs: with an environment of our own, so that neither the
//! outer cargo's variables nor the caller's flags change what is built or make it build anew.

use std::{
    env,
    ffi::{OsStr, OsString},
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

/// What is said to cargo beside the packages: the release profile, static, and without the debug
/// information that would make what is carried into each guest six times as large.
const SETTINGS: &[(&str, &str)] = &[
    ("RUSTFLAGS", "-Ctarget-feature=+crt-static"),
    ("CARGO_PROFILE_RELEASE_DEBUG", "false"),
    ("CARGO_PROFILE_RELEASE_STRIP", "debuginfo"),
    ("CARGO_TERM_COLOR", "never"),
];

/// Variables that cargo and rustup need to work at all. All others could change the result.
const KEPT: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "TMPDIR",
    "CARGO_HOME",
    "CARGO_BUILD_JOBS",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUSTUP_AUTO_INSTALL",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
];

/// The same by their beginnings: how cargo reaches its registry.
const KEPT_BEGINNINGS: &[&str] =
    &["CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTRIES_", "CARGO_REGISTRY_", "CARGO_SOURCE_"];

/// A build that takes longer shows what it does.
const SILENT: Duration = Duration::from_secs(10);

/// Lines of a failed build that are shown.
const SHOWN: usize = 60;

/// Takes the environment away but for what is needed, and goes to the workspace, where the pinned
/// toolchain holds.
pub(super) fn clean<'a>(command: &'a mut Command, workspace: &Path) -> &'a mut Command {
    let kept = env::vars_os().filter(|(name, _)| is_kept(name));
    command.env_clear().envs(kept).env("LC_ALL", "C").current_dir(workspace).stdin(Stdio::null())
}

fn is_kept(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    KEPT.contains(&&*name) || KEPT_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// What is fixed about the build, for the key of a result.
pub(super) fn recipe() -> String {
    format!("release {SETTINGS:?}")
}

/// `<workspace>/target`, or `CARGO_TARGET_DIR`.
pub(super) fn target_dir(workspace: &Path) -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(dir) if !dir.is_empty() => workspace.join(dir),
        _ => workspace.join("target"),
    }
}

/// The cargo that runs us, or the one in `PATH`.
fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// The rustc beside that cargo, or the one in `PATH`.
fn rustc() -> OsString {
    let beside = PathBuf::from(cargo()).with_file_name("rustc");
    if beside.is_absolute() && beside.is_file() { beside.into() } else { "rustc".into() }
}

fn ask_rustc(workspace: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(rustc());
    let output = clean(&mut command, workspace)
        .args(arguments)
        .output()
        .context("rustc cannot be run: install Rust, see https://rustup.rs")?;
    ensure!(
        output.status.success(),
        "rustc {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What the workspace's compiler says of itself.
pub(super) fn rustc_version(workspace: &Path) -> Result<String> {
    ask_rustc(workspace, &["-vV"])
}

/// Whether the workspace's toolchain has the standard library of a target.
pub(super) fn has_target(workspace: &Path, triple: &str) -> Result<bool> {
    let folder = ask_rustc(workspace, &["--print", "target-libdir", "--target", triple])?;
    Ok(Path::new(folder.trim()).is_dir())
}

/// Builds packages, given as (package, program), with the release profile.
pub(super) fn build(
    workspace: &Path,
    target: &Path,
    triple: &str,
    programs: &[(&str, &str)],
    environment: &[(String, OsString)],
) -> Result<()> {
    // A lab that is killed takes its build along.
    let mut command = Command::new("setpriv");
    clean(&mut command, workspace)
        .args(["--pdeathsig", "TERM", "--"])
        .arg(cargo())
        .env("RUSTC", rustc())
        // Empty: not even the one of a configuration file.
        .env("RUSTC_WRAPPER", "")
        .envs(SETTINGS.iter().copied())
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .args(["build", "--locked", "--release", "--target", triple, "--target-dir"])
        .arg(target);
    for (package, program) in programs {
        command.args(["--package", package, "--bin", program]);
    }
    run(&mut command, &format!("cargo build for {triple}"))
}

/// Runs a command; its standard error is shown when it takes long, and its end when it fails.
fn run(command: &mut Command, what: &str) -> Result<()> {
    let started = Instant::now();
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{what}: {:?} cannot be run", command.get_program()))?;
    let mut said = Vec::new();
    if let Some(stream) = child.stderr.take() {
        let mut is_long = false;
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if !is_long && started.elapsed() > SILENT {
                eprintln!("lab: {what} takes a while");
                is_long = true;
            }
            if is_long {
                eprintln!("lab: {line}");
            }
            said.push(line);
        }
    }
    let status = child.wait().with_context(|| format!("{what}: cannot be waited for"))?;
    let end = said.len().saturating_sub(SHOWN);
    ensure!(status.success(), "{what}: {status}\n{}", said[end..].join("\n"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outer_cargo_does_not_leak() {
        for name in [
            "RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "RUSTC",
            "RUSTC_WRAPPER",
            "RUSTC_BOOTSTRAP",
            "CARGO_MANIFEST_DIR",
            "CARGO_PKG_NAME",
            "CARGO_TARGET_DIR",
            "CARGO_PROFILE_RELEASE_LTO",
            "CARGO_INCREMENTAL",
            "LD_LIBRARY_PATH",
            "CC",
            "CFLAGS",
            "LIBSQLITE3_FLAGS",
        ] {
            assert!(!is_kept(OsStr::new(name)), "{name}");
        }
        assert!(is_kept(OsStr::new("CARGO_HOME")));
        assert!(is_kept(OsStr::new("CARGO_NET_OFFLINE")));
    }

    #[test]
    fn a_failed_build_says_its_step_and_its_last_lines() {
        let mut command = Command::new("sh");
        command.args(["-c", "seq 100 >&2; echo error: no such crate >&2; exit 3"]);
        let said = run(&mut command, "cargo build for x").unwrap_err().to_string();
        assert!(said.starts_with("cargo build for x: exit status: 3\n42\n"), "{said}");
        assert!(said.ends_with("100\nerror: no such crate"), "{said}");
        assert!(run(&mut Command::new("true"), "nothing").is_ok());
    }

    #[test]
    fn this_toolchain_has_its_own_target() {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert!(rustc_version(workspace).unwrap().starts_with("rustc 1."));
        assert!(has_target(workspace, "x86_64-unknown-linux-gnu").unwrap());
        assert!(!has_target(workspace, "riscv32imac-unknown-none-elf").unwrap());
    }
}
