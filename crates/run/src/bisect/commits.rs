//! Commits: a tree of our own over the objects of the user's repository, which is not written to,
//! and git's own bisect, which chooses.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use rtproof_host::trusted;
use rtproof_results::kernel::bisect::{BisectStep, StepOutcome, Suspect};

use super::watch::Watch;
use crate::{
    file::write_whole,
    kernel::{
        KernelError,
        source::obeyed,
        tool::{Log, answer, tool},
    },
};

/// Lines of a diff stat that are kept.
const STAT_MAX: usize = 40;

/// What git says comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Test this one; about so many are left after it, in git's words.
    Test(String, String),
    /// The first bad one.
    Found(String),
    /// Those that could not be tested, and the one after them.
    Among(Vec<String>),
}

/// A tree of our own.
#[derive(Clone, Debug)]
pub(super) struct Repository {
    pub(super) tree: PathBuf,
}

fn git(at: &Path) -> Result<Command, KernelError> {
    let mut command = tool("git", "git")?;
    command.arg("-C").arg(at);
    // What the caller's shell sets is about another repository.
    for name in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
    ] {
        command.env_remove(name);
    }
    Ok(command)
}

fn ask(at: &Path, words: &[&str]) -> Result<String, KernelError> {
    let mut command = git(at)?;
    command.args(words);
    answer(command, at)
}

/// The commit that a name stands for in the user's repository.
pub(super) fn commit(source: &Path, name: &str) -> Result<String, KernelError> {
    ask(source, &["rev-parse", "--git-dir"])?;
    let wanted = format!("{name}^{{commit}}");
    ask(source, &["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted]).map_err(|_| {
        let why = format!("no commit {name:?}; `git fetch --tags` gets those of others");
        KernelError::path(source, why)
    })
}

impl Repository {
    /// Makes it, or takes it as it was left.
    #[expect(clippy::disallowed_methods, reason = "the user's repository and our own")]
    pub(super) fn open(source: &Path, place: &Path) -> Result<Self, KernelError> {
        let path = |name: &str| {
            ask(source, &["rev-parse", "--path-format=absolute", "--git-path", name])
                .map(PathBuf::from)
        };
        let objects = path("objects")?;
        // Makefiles come out of it.
        for folder in [&objects, &place.to_path_buf(), &place.join("build")] {
            if folder.exists() {
                obeyed(trusted::folder(folder))?;
            }
        }
        let tree = place.join("tree");
        fs::create_dir_all(&tree).map_err(KernelError::io(&tree))?;
        ask(&tree, &["init", "--quiet", "."])?;
        let own = tree.join(".git");
        let write = |name: &str, bytes: &[u8]| {
            let file = own.join(name);
            write_whole(&file, |to| Ok(to.write_all(bytes)?))
                .map_err(|error| KernelError::path(file, format!("{error:#}")))
        };
        write("objects/info/alternates", format!("{}\n", objects.display()).as_bytes())?;
        if let Ok(bytes) = fs::read(path("shallow")?) {
            write("shallow", &bytes)?;
        }
        // We hold the folder: no git of ours runs, so these were left by one that was killed.
        for name in ["index.lock", "HEAD.lock"] {
            let _ = fs::remove_file(own.join(name));
        }
        Ok(Self { tree })
    }

    /// Refuses what git could not bisect: the bad end must come after the good one.
    pub(super) fn check_order(&self, good: &str, bad: &str) -> Result<(), KernelError> {
        let base = ask(&self.tree, &["merge-base", good, bad]);
        match base {
            Ok(base) if base == bad => {
                let why = if good == bad {
                    "both ends are the same commit"
                } else {
                    "the bad end is older than the good one; to find what removed a latency, swap \
                     them, and test with a command whose exit code is turned round"
                };
                Err(KernelError::path(&self.tree, why))
            }
            Ok(_) => Ok(()),
            Err(_) => Err(KernelError::path(&self.tree, "both ends have no commit in common")),
        }
    }

    /// Puts a commit into the tree. `clean`: also removes what a killed checkout left.
    pub(super) fn checkout(
        &self,
        commit: &str,
        clean: bool,
        place: &Path,
        watch: &Watch<'_>,
    ) -> Result<(), KernelError> {
        let mut log = Log::begin(place.join("git.log"))?;
        let mut run = |words: &[&str]| {
            let mut command = git(&self.tree)?;
            command.args(words);
            log.done("checkout", command, &mut |progress| watch.observe(progress))
        };
        run(&["checkout", "--quiet", "--force", "--detach", commit])?;
        if clean {
            run(&["clean", "--quiet", "-ffdx"])?;
        }
        Ok(())
    }

    /// What git makes of all steps.
    pub(super) fn next(
        &self,
        [good, bad]: [&str; 2],
        steps: &[&BisectStep],
        place: &Path,
    ) -> Result<Next, KernelError> {
        let mut text = format!("git bisect start '--no-checkout' '{bad}' '{good}'\n");
        for step in steps {
            let word = match step.outcome {
                StepOutcome::Good => "good",
                StepOutcome::Bad => "bad",
                StepOutcome::Skipped => "skip",
            };
            text += &format!("git bisect {word} {}\n", step.id);
        }
        let file = place.join("bisect.log");
        write_whole(&file, |to| Ok(to.write_all(text.as_bytes())?))
            .map_err(|error| KernelError::path(&file, format!("{error:#}")))?;
        let mut command = git(&self.tree)?;
        command.args(["bisect", "replay"]).arg(&file).env("LC_ALL", "C");
        let output = command.output().map_err(KernelError::io(&self.tree))?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if let Some(found) = said.lines().find_map(|it| it.strip_suffix(" is the first bad commit"))
        {
            return Ok(Next::Found(found.to_owned()));
        }
        if said.contains("only 'skip'ped commits left") {
            let is_id =
                |line: &&str| line.len() >= 40 && line.bytes().all(|byte| byte.is_ascii_hexdigit());
            return Ok(Next::Among(said.lines().filter(is_id).map(str::to_owned).collect()));
        }
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            let lines: Vec<&str> = said.lines().chain(errors.lines()).take(8).collect();
            let why = format!("git bisect: {}", lines.join("; "));
            return Err(KernelError::path(&self.tree, why));
        }
        let commit = ask(&self.tree, &["rev-parse", "--verify", "--quiet", "BISECT_HEAD"])?;
        let left = said.split_once("(roughly ").and_then(|(_, rest)| rest.split_once(')'));
        let left = left.map_or_else(|| "some steps".to_owned(), |(left, _)| left.to_owned());
        Ok(Next::Test(commit, left))
    }

    /// First line of its message.
    pub(super) fn subject(&self, commit: &str) -> Result<String, KernelError> {
        ask(&self.tree, &["log", "-1", "--format=%s", commit])
    }

    /// Ids of its parents.
    pub(super) fn parents(&self, commit: &str) -> Result<Vec<String>, KernelError> {
        let text = ask(&self.tree, &["log", "-1", "--format=%P", commit])?;
        Ok(text.split_whitespace().map(str::to_owned).collect())
    }

    /// What is known of a commit.
    pub(super) fn suspect(
        &self,
        commit: &str,
        outcome: Option<StepOutcome>,
    ) -> Result<Suspect, KernelError> {
        let head = ask(&self.tree, &["log", "-1", "--format=%s%n%an <%ae>%n%aI", commit])?;
        let mut lines = head.lines().map(str::to_owned);
        let mut line = || lines.next().unwrap_or_default();
        let words = ["log", "-1", "-m", "--first-parent", "--stat=90", "--format=", commit];
        let stat = ask(&self.tree, &words)?;
        let stat: Vec<&str> = stat.lines().filter(|line| !line.is_empty()).collect();
        // The last line is the sum.
        let (sum, files) =
            stat.split_last().map_or((None, &stat[..]), |(sum, rest)| (Some(sum), rest));
        let mut kept: Vec<String> =
            files.iter().take(STAT_MAX).map(|line| line.trim().to_owned()).collect();
        if files.len() > STAT_MAX {
            kept.push(format!("... {} more files", files.len() - STAT_MAX));
        }
        kept.extend(sum.map(|line| line.trim().to_owned()));
        Ok(Suspect::Commit {
            commit: commit.to_owned(),
            subject: line(),
            author: line(),
            date: line(),
            stat: kept,
            outcome,
        })
    }
}
