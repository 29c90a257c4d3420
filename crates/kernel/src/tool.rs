//! Runs make, patch, tar and git: every line into the log, the errors kept, objects counted.

use std::{
    collections::VecDeque,
    fs::File,
    io::{BufRead, BufReader, PipeReader, Read, Write},
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rtproof_host::{door, trusted};

use crate::KernelError;

/// Lines of an error that are shown; the log has them all.
const ERRORS_MAX: usize = 12;

/// Longest line that is kept as one, bytes.
const LINE_MAX: u64 = 64 << 10;

/// Last lines that are shown where none looks like an error.
const LAST_MAX: usize = 10;

/// How far long work is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkProgress {
    /// What is done, e.g. `make`.
    pub step: String,
    /// Objects made so far: compiled, assembled, linked, archived. How many there will be is not
    /// known beforehand.
    pub objects: u64,
    /// Since the step began.
    pub elapsed: Duration,
}

/// Receives the progress, about once a second, and returns whether to continue.
pub type OnProgress<'a> = &'a mut dyn FnMut(&WorkProgress) -> ControlFlow<()>;

/// What a program wrote, and how long it took.
#[derive(Clone, Debug, Default)]
pub struct ToolOutcome {
    pub objects: u64,
    pub(crate) warnings: u64,
    pub seconds: u64,
    pub status: String,
    pub(crate) succeeded: bool,
    /// Lines that look like errors, else the last lines.
    pub errors: Vec<String>,
    /// The reason as far as known.
    pub hint: String,
}

/// A log that grows step by step.
#[derive(Debug)]
pub struct Log {
    pub path: PathBuf,
    file: File,
}

impl Log {
    /// Begins a log, in place of an older one.
    pub fn begin(path: PathBuf) -> Result<Self, KernelError> {
        let file = door::create_anew(&path, 0o644).map_err(KernelError::io(&path))?;
        Ok(Self { path, file })
    }

    fn line(&mut self, line: &str) -> Result<(), KernelError> {
        writeln!(self.file, "{line}").map_err(KernelError::io(&self.path))
    }

    /// Runs a program to its end; `Ok` also where it fails.
    pub fn run(
        &mut self,
        step: &str,
        mut command: Command,
        observer: OnProgress<'_>,
    ) -> Result<ToolOutcome, KernelError> {
        self.line(&format!("$ {command:?}"))?;
        let io = |error| KernelError::Io { path: self.path.clone(), error };
        let (reader, writer) = std::io::pipe().map_err(io)?;
        let other = writer.try_clone().map_err(io)?;
        command.stdout(writer).stderr(other);
        let started = Instant::now();
        let mut child = command.spawn().map_err(KernelError::io(command.get_program()))?;
        // It holds the writing ends, without which the pipe never ends.
        drop(command);
        let mut seen = OutputScan::default();
        let mut shown = started;
        let mut reader = BufReader::new(reader);
        let mut bytes = Vec::new();
        let mut failed = None;
        // A longer line comes in parts.
        let part = |reader: &mut BufReader<PipeReader>, to: &mut Vec<u8>| {
            reader.take(LINE_MAX).read_until(b'\n', to).is_ok_and(|read| read > 0)
        };
        while part(&mut reader, &mut bytes) {
            let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
            bytes.clear();
            seen.line(&line);
            if failed.is_none() {
                failed = self.line(&line).err();
            }
            if shown.elapsed() >= Duration::from_secs(1) {
                shown = Instant::now();
                let (step, elapsed) = (step.to_owned(), started.elapsed());
                let progress = WorkProgress { step, objects: seen.objects, elapsed };
                if observer(&progress).is_break() {
                    // make ends what it started, and removes what is half made.
                    let pid = rustix::process::Pid::from_child(&child);
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
                }
            }
        }
        let status = child.wait().map_err(KernelError::io(&self.path))?;
        if let Some(error) = failed {
            return Err(error);
        }
        let seconds = started.elapsed().as_secs();
        self.line(&format!("$ ended: {status}, {seconds} s"))?;
        Ok(seen.ended(status.to_string(), status.success(), seconds))
    }

    /// As [`Log::run`], and a failure is an error.
    pub fn done(
        &mut self,
        step: &str,
        command: Command,
        observer: OnProgress<'_>,
    ) -> Result<ToolOutcome, KernelError> {
        let ran = self.run(step, command, observer)?;
        if ran.succeeded { Ok(ran) } else { Err(self.failure(step, ran)) }
    }

    pub fn failure(&self, step: &str, ran: ToolOutcome) -> KernelError {
        let ToolOutcome { status, hint, errors: lines, .. } = ran;
        KernelError::Failed { step: step.into(), status, hint, lines, log: self.path.clone() }
    }
}

/// A program of the system.
pub fn tool(name: &str, package: &str) -> Result<Command, KernelError> {
    trusted::command(name).map(without_output).map_err(|error| KernelError::Missing {
        program: name.into(),
        why: error.to_string(),
        package: package.into(),
    })
}

/// git in a tree: without hooks, without the configuration of the machine and of the user, who is
/// asked for the name to commit by alone.
pub fn git(tree: &Path) -> Result<Command, KernelError> {
    let mut command = tool("git", "git")?;
    command.arg("-C").arg(tree);
    for (key, name) in [("user.name", "GIT_COMMITTER_NAME"), ("user.email", "GIT_COMMITTER_EMAIL")]
    {
        let mut ask = tool("git", "git")?;
        ask.arg("-C").arg(tree).args(["config", "--get", key]);
        ask.envs(std::env::var_os("HOME").map(|home| ("HOME", home)));
        let value = std::env::var(name).ok().or_else(|| answer(&mut ask, tree).ok());
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            command.env(name, value);
        }
    }
    command.args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]).envs([
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_TERMINAL_PROMPT", "0"),
        // None may wait for a terminal.
        ("GIT_EDITOR", "true"),
    ]);
    Ok(command)
}

fn without_output(mut command: Command) -> Command {
    command.stdin(Stdio::null());
    command
}

/// Runs a short program in a folder and gives what it writes to stdout.
pub fn answer(command: &mut Command, at: &Path) -> Result<String, KernelError> {
    let output = command.output().map_err(KernelError::io(at))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().take(6).collect::<Vec<_>>().join("; ");
        let name = Path::new(command.get_program()).file_name().unwrap_or_default();
        return Err(KernelError::path(at, format!("{}: {said}", name.display())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// What the lines of a program say.
#[derive(Debug, Default)]
struct OutputScan {
    objects: u64,
    warnings: u64,
    errors: Vec<String>,
    last: VecDeque<String>,
    is_full: bool,
    no_program: bool,
    is_killed: bool,
}

impl OutputScan {
    fn line(&mut self, line: &str) {
        // `  CC      init/main.o`, as kbuild prints it without V=1.
        let made = |line: &str| {
            let word = line.strip_prefix("  ")?.split_whitespace().next()?;
            matches!(word, "CC" | "AS" | "LD" | "AR" | "HOSTCC" | "HOSTLD").then_some(())
        };
        self.objects += u64::from(made(line).is_some());
        self.warnings += u64::from(line.contains(": warning: "));
        self.is_full |= line.contains("No space left on device");
        self.is_killed |= line.contains("Killed signal terminated program");
        let is_missing = ["not found", "No such file or directory"];
        self.no_program |= line.contains("/bin/sh: ")
            && is_missing.iter().any(|it| line.contains(it))
            || line.ends_with(": not found");
        let marks = [
            ": error: ",
            "fatal error: ",
            "*** ",
            "No space left on device",
            ": not found",
            "undefined reference",
            "Killed signal",
            "error:",
        ];
        if self.errors.len() < ERRORS_MAX && marks.iter().any(|mark| line.contains(mark)) {
            self.errors.push(line.to_owned());
        }
        if !line.trim().is_empty() {
            self.last.push_back(line.to_owned());
        }
        if self.last.len() > LAST_MAX {
            self.last.pop_front();
        }
    }

    fn ended(self, status: String, succeeded: bool, seconds: u64) -> ToolOutcome {
        let hint = match () {
            () if self.is_full => ": the disk is full; what is there is kept, and continued later",
            () if self.is_killed => {
                ": the compiler was killed, as when memory runs out; fewer --jobs"
            }
            () if self.no_program => ": a program is missing; its name is below",
            () => "",
        };
        ToolOutcome {
            objects: self.objects,
            warnings: self.warnings,
            seconds,
            status,
            succeeded,
            errors: if self.errors.is_empty() { self.last.into() } else { self.errors },
            hint: hint.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = tool("sh", "dash").unwrap();
        command.args(["-c", script]);
        command
    }

    #[test]
    fn objects_are_counted_and_the_compiler_s_lines_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::begin(folder.path().join("log")).unwrap();
        let script = "echo '  CC      a.o'; echo '  GEN     b'; echo 'a.c:1:2: warning: x' >&2; \
                      echo 'a.c:3:4: error: no y' >&2; exit 2";
        let error = log.done("make", sh(script), &mut |_| ControlFlow::Continue(())).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("  a.c:3:4: error: no y") && text.contains("log: "), "{text}");
        let ran = log
            .run("make", sh("echo '  CC a.o'; echo '  LD b.o'"), &mut |_| ControlFlow::Continue(()))
            .unwrap();
        assert_eq!((ran.objects, ran.warnings, ran.succeeded), (2, 0, true));
        let full = log.run("make", sh("echo 'as: No space left on device'; exit 1"), &mut |_| {
            ControlFlow::Continue(())
        });
        assert!(full.unwrap().hint.contains("disk is full"));
        let missing =
            log.run("make", sh("no-such-cc -c a.c"), &mut |_| ControlFlow::Continue(())).unwrap();
        assert!(missing.hint.contains("missing") && missing.errors[0].contains("no-such-cc"));
    }

    #[test]
    fn git_runs_no_hook_and_reads_no_configuration_of_the_user() {
        let folder = tempfile::tempdir().unwrap();
        let run = |words: &[&str]| answer(git(folder.path()).unwrap().args(words), folder.path());
        if tool("git", "git").is_err() {
            return;
        }
        run(&["init", "-q"]).unwrap();
        let hook = folder.path().join(".git/hooks/post-checkout");
        let script = format!("#!/bin/sh\ntouch {}/ran\n", folder.path().display());
        for (path, text) in [(&hook, script.as_str()), (&folder.path().join("monitor"), &script)] {
            door::create_anew(path, 0o755).unwrap().write_all(text.as_bytes()).unwrap();
        }
        let monitor = folder.path().join("monitor");
        run(&["config", "core.fsmonitor", &monitor.to_string_lossy()]).unwrap();
        let names = ["-c", "user.name=x", "-c", "user.email=x@example.org"];
        run(&[&names[..], &["commit", "-q", "--allow-empty", "-m", "x"]].concat()).unwrap();
        run(&["status"]).unwrap();
        run(&["checkout", "-q", "-b", "other"]).unwrap();
        assert!(!folder.path().join("ran").exists());
        assert_eq!(run(&["config", "--global", "--list"]).unwrap(), "");
    }

    #[test]
    fn a_log_never_follows_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let precious = folder.path().join("precious");
        std::os::unix::fs::symlink(&precious, &path).unwrap();
        Log::begin(path).unwrap();
        assert!(!precious.exists());
    }
}
