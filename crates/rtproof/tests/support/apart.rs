//! The real binary on the running system, in a mount namespace of its own where chosen files of
//! /proc and /sys, and /var/lib, are files of the test: nothing of the machine is written.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use tempfile::TempDir;

use super::{binary, folder};

/// Mounts what the arguments say, up to `--`, then becomes what comes after it.
const SCRIPT: &str = "set -e
mount --bind \"$1\" /var/lib
shift
while [ \"$1\" != -- ]; do mount --bind \"$1\" \"$2\"; shift 2; done
shift
exec \"$@\"";

/// Whether a mount namespace can be made here.
fn can_be_apart() -> bool {
    let script = "mount --bind /tmp /tmp";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", script]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Files of the test over files of the machine.
pub(crate) struct Apart {
    folder: TempDir,
    /// Path on the machine, the file that lies over it, what that held at first.
    files: Vec<(String, String, String)>,
}

impl Apart {
    /// The same where a namespace can be made, which CI has to; `None`, and said, elsewhere.
    #[allow(clippy::print_stderr, reason = "says what is left out")]
    pub(crate) fn here(files: &[(&str, &str)]) -> Option<Self> {
        if can_be_apart() {
            return Some(Self::new(files));
        }
        let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        assert!(!is_ci, "no mount namespace for the test");
        eprintln!("left out: no mount namespace can be made here");
        None
    }

    /// Lays these over the machine's.
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = folder();
        fs::create_dir(folder.path().join("var")).expect("a folder");
        let over = |(at, (path, text)): (usize, &(&str, &str))| {
            let file = folder.path().join(format!("knob-{at}"));
            fs::write(&file, text).expect("a file");
            let file = file.to_str().expect("UTF-8").to_owned();
            ((*path).to_owned(), file, (*text).to_owned())
        };
        let files = files.iter().enumerate().map(over).collect();
        Self { folder, files }
    }

    /// Its folder: where output goes; `var` in it is /var/lib.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The file that lies over one of the machine's.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        let found = self.files.iter().find(|it| it.0 == path);
        found.map(|it| it.1.clone().into()).expect("a file of the test")
    }

    /// Files that do not hold what they held at first.
    pub(crate) fn differ(&self) -> Vec<String> {
        let holds = |file: &str| fs::read_to_string(file).expect("a file");
        let differs = |it: &&(String, String, String)| holds(&it.1) != it.2;
        self.files
            .iter()
            .filter(differs)
            .map(|it| format!("{} = {:?}", it.0, holds(&it.1)))
            .collect()
    }

    /// The command; a signal to its process is one to rtproof.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", SCRIPT, "apart"]);
        command.arg(self.folder().join("var"));
        for (path, file, _) in &self.files {
            command.args([file, path]);
        }
        command.args(["--", binary()]).args(args);
        command.current_dir(self.folder()).env("NO_COLOR", "1").stdin(Stdio::null());
        command
    }

    /// Runs to the end.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("unshare runs")
    }

    /// Starts in the background.
    pub(crate) fn start(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("unshare starts")
    }
}
