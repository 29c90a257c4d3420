//! Commits: a tree of our own over the objects of the user's repository, which is not written to,
//! and git's own bisect, which chooses.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use rtproof_host::{
    door::{self, write_whole},
    trusted,
};
use rtproof_kernel::{
    KernelError, compare, config, kconfig,
    source::obeyed,
    tool::{Log, answer, git},
};
use rtproof_results::kernel::{BisectStep, BisectSuspect, OptionPair, StepOutcome};

use super::BisectWatch;
use super::trial::Rig;

/// Lines of a diff stat that are kept.
const STAT_MAX: usize = 40;

/// What git says comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NextCommit {
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

fn ask(at: &Path, words: &[&str]) -> Result<String, KernelError> {
    answer(git(at)?.args(words), at)
}

/// The commit of a name in the user's repository.
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
        if let Ok(bytes) = door::read_bytes(&path("shallow")?, rtproof_kernel::CONFIG_MAX) {
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
        watch: &BisectWatch<'_>,
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
    ) -> Result<NextCommit, KernelError> {
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
        command.args(["bisect", "replay"]).arg(&file);
        let output = command.output().map_err(KernelError::io(&self.tree))?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if let Some(found) = said.lines().find_map(|it| it.strip_suffix(" is the first bad commit"))
        {
            return Ok(NextCommit::Found(found.to_owned()));
        }
        if said.contains("only 'skip'ped commits left") {
            let is_id =
                |line: &&str| line.len() >= 40 && line.bytes().all(|byte| byte.is_ascii_hexdigit());
            return Ok(NextCommit::Among(said.lines().filter(is_id).map(str::to_owned).collect()));
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
        Ok(NextCommit::Test(commit, left))
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

    /// Subject, author, date and files of a commit.
    pub(super) fn suspect(
        &self,
        commit: &str,
        outcome: Option<StepOutcome>,
    ) -> Result<BisectSuspect, KernelError> {
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
        Ok(BisectSuspect::Commit {
            commit: commit.to_owned(),
            subject: line(),
            author: line(),
            date: line(),
            stat: kept,
            outcome,
        })
    }
}

// Delta debugging: a smallest set of differences that still fails, of which none can be left out.
// Zeller, Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 28(2), 2002.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Minimal {
    /// Indices of the differences.
    pub(super) set: Vec<usize>,
    /// Those of them that may not be needed: the set without them could not be tested.
    pub(super) open: Vec<usize>,
}

/// Reduces `0..all`, which is bad, while nothing of it is good. `test` is asked the same more than
/// once, and has to answer the same.
pub(super) fn ddmin<E>(
    all: usize,
    test: &mut dyn FnMut(&[usize]) -> Result<StepOutcome, E>,
) -> Result<Minimal, E> {
    let mut set: Vec<usize> = (0..all).collect();
    let mut parts = 2;
    while set.len() > 1 {
        let chunks = split(&set, parts);
        let complements = chunks.iter().map(|chunk| without(&set, chunk));
        let mut smaller = None;
        // With two parts each is the other's complement.
        let asked = chunks.iter().cloned().map(|it| (it, true));
        let asked = asked.chain(complements.map(|it| (it, false)).filter(|_| parts > 2));
        for (candidate, is_chunk) in asked {
            if test(&candidate)? == StepOutcome::Bad {
                smaller = Some((candidate, is_chunk));
                break;
            }
        }
        match smaller {
            Some((chunk, true)) => (set, parts) = (chunk, 2),
            Some((complement, false)) => (set, parts) = (complement, (parts - 1).max(2)),
            None if parts >= set.len() => break,
            None => parts = (parts * 2).min(set.len()),
        }
        parts = parts.min(set.len().max(2));
    }
    let mut open = Vec::new();
    for &one in set.iter().filter(|_| set.len() > 1) {
        if test(&without(&set, &[one]))? == StepOutcome::Skipped {
            open.push(one);
        }
    }
    Ok(Minimal { set, open })
}

/// In `parts` pieces of nearly the same size, in order; none is empty.
fn split(set: &[usize], parts: usize) -> Vec<Vec<usize>> {
    let cut = |at: usize| at * set.len() / parts;
    let pieces = (0..parts).map(|at| set[cut(at)..cut(at + 1)].to_vec());
    pieces.filter(|piece| !piece.is_empty()).collect()
}

fn without(set: &[usize], gone: &[usize]) -> Vec<usize> {
    set.iter().copied().filter(|it| !gone.contains(it)).collect()
}

// Options: what differs between two resolved configurations, and candidates between them. A set
// that is requested is not the set that kconfig makes of it, so answers belong to the result.

/// Options that a step's title names.
const NAMED: usize = 4;

/// A configuration as kconfig made it.
#[derive(Clone, Debug)]
pub(super) struct ResolvedConfig {
    pub(super) text: String,
    /// SHA-256 of its options.
    pub(super) id: String,
}

/// Lets the source's own kconfig decide.
pub(super) fn resolve(
    rig: &Rig<'_>,
    text: &str,
    log: &mut Log,
) -> Result<ResolvedConfig, KernelError> {
    rig.configure(text)?;
    let mut observer = |progress: &rtproof_kernel::tool::WorkProgress| rig.watch.observe(progress);
    log.done("olddefconfig", rig.make.command(&["olddefconfig"])?, &mut observer)?;
    let path = rig.make.objects.join(".config");
    let text = door::read_text(&path, rtproof_kernel::CONFIG_MAX).map_err(KernelError::io(path))?;
    let lines: String =
        compare::parsed(&text).iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    Ok(ResolvedConfig { text, id: digest(lines.as_bytes()) })
}

pub(super) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What differs, and how far it was reduced.
pub(super) struct Reduced {
    pub(super) suspects: Vec<BisectSuspect>,
    pub(super) changed: Vec<OptionPair>,
    pub(super) is_minimal: bool,
    /// The configuration with the suspects alone.
    pub(super) result: ResolvedConfig,
    pub(super) notes: Vec<String>,
}

/// Both configurations, and what differs between them.
pub(super) struct Pair {
    pub(super) good: ResolvedConfig,
    pub(super) bad: ResolvedConfig,
    differ: Vec<OptionPair>,
    kconfig: kconfig::KconfigOptions,
}

impl Pair {
    /// Refuses two that kconfig makes equal.
    pub(super) fn new(
        rig: &Rig<'_>,
        good: ResolvedConfig,
        bad: ResolvedConfig,
    ) -> Result<Self, KernelError> {
        let differ = compare::options(&good.text, &bad.text);
        if differ.is_empty() {
            let why = "kconfig makes the same of both configurations: no option differs";
            return Err(KernelError::path(&rig.request.source, why));
        }
        let kconfig = kconfig::read(&rig.make.tree, &rig.make.srcarch());
        Ok(Self { good, bad, differ, kconfig })
    }

    /// The good configuration with some options of the bad one.
    fn mixed(&self, options: &[&OptionPair]) -> String {
        let values: BTreeMap<&str, &str> =
            options.iter().map(|pair| (pair.name.as_str(), pair.values[1].as_str())).collect();
        let name_of = |line: &str| {
            let rest = line.strip_prefix("CONFIG_").or_else(|| line.strip_prefix("# CONFIG_"))?;
            rest.split(['=', ' ']).next().map(str::to_owned)
        };
        let kept = self.good.text.lines();
        let kept = kept.filter(|line| !name_of(line).is_some_and(|it| values.contains_key(&*it)));
        let mut text: String = kept.flat_map(|line| [line, "\n"]).collect();
        // Of a choice the last one that is set holds.
        let (off, on): (Vec<_>, Vec<_>) = values.iter().partition(|(_, value)| **value == "n");
        for (name, value) in off.into_iter().chain(on) {
            text += &config::setting(name, value);
        }
        text
    }

    /// Options whose prompts make all the difference, if they do; else all that differ. What has no
    /// prompt follows from others and only costs time.
    fn candidates(&self, rig: &Rig<'_>, log: &mut Log) -> Result<Vec<&OptionPair>, KernelError> {
        let all: Vec<&OptionPair> = self.differ.iter().collect();
        let with: Vec<&OptionPair> =
            all.iter().copied().filter(|pair| self.kconfig.has_prompt(&pair.name)).collect();
        if with.is_empty() || with.len() == all.len() {
            return Ok(all);
        }
        let same = resolve(rig, &self.mixed(&with), log)?.id == self.bad.id;
        Ok(if same { with } else { all })
    }

    /// Reduces the difference. `test` is asked with a configuration and a title.
    pub(super) fn reduce(
        &self,
        rig: &Rig<'_>,
        log: &mut Log,
        test: &mut dyn FnMut(&ResolvedConfig, String) -> Result<StepOutcome, KernelError>,
    ) -> Result<Reduced, KernelError> {
        let all = self.candidates(rig, log)?;
        let mut notes = Vec::new();
        if resolve(rig, &self.mixed(&all), log)?.id != self.bad.id {
            notes.push(
                "the good configuration with all values of the bad one is not the bad one: kconfig \
                 decides some options by others; the answer holds for the configurations tested"
                    .to_owned(),
            );
        }
        let pick = |set: &[usize]| -> Vec<&OptionPair> { set.iter().map(|at| all[*at]).collect() };
        let mut known: BTreeMap<Vec<usize>, ResolvedConfig> = BTreeMap::new();
        let mut ask = |set: &[usize]| -> Result<StepOutcome, KernelError> {
            let resolved = match known.get(set) {
                Some(resolved) => resolved.clone(),
                None => {
                    rig.watch.label(format!("{} of {} options", set.len(), all.len()));
                    let resolved = resolve(rig, &self.mixed(&pick(set)), log)?;
                    known.insert(set.to_vec(), resolved.clone());
                    resolved
                }
            };
            test(&resolved, title(&pick(set), all.len()))
        };
        let Minimal { set, open } = match ask(&(0..all.len()).collect::<Vec<_>>())? {
            StepOutcome::Bad => ddmin(all.len(), &mut ask)?,
            _ => {
                return Err(KernelError::path(
                    &rig.request.place,
                    "the good configuration with all values of the bad one is not bad: kconfig \
                     does not keep them, so no set of options is the difference",
                ));
            }
        };
        let chosen = pick(&set);
        let result = resolve(rig, &self.mixed(&chosen), log)?;
        let changed = compare::options(&self.good.text, &result.text);
        let value =
            |name: &str| changed.iter().find(|pair| pair.name == name).map(|of| &of.values[1]);
        for pair in chosen.iter().filter(|pair| value(&pair.name) != Some(&pair.values[1])) {
            notes.push(format!("{} was asked for and kconfig did not keep it", pair.name));
        }
        let is_chosen = |name: &str| chosen.iter().any(|pair| pair.name == name);
        let suspects = set.iter().map(|at| {
            let (prompt, help) = self.kconfig.about(&all[*at].name);
            let is_needed = (!open.contains(at)).then_some(true);
            BisectSuspect::Option { option: all[*at].clone(), prompt, help, is_needed }
        });
        Ok(Reduced {
            suspects: suspects.collect(),
            changed: changed.iter().filter(|pair| !is_chosen(&pair.name)).cloned().collect(),
            is_minimal: open.is_empty(),
            result,
            notes,
        })
    }
}

/// Names of a set.
fn title(options: &[&OptionPair], all: usize) -> String {
    let named = options.iter().take(NAMED).map(|pair| format!("{}={}", pair.name, pair.values[1]));
    let mut text = named.collect::<Vec<_>>().join(", ");
    if options.len() > NAMED {
        text += &format!(" and {} more", options.len() - NAMED);
    }
    format!("{} of {all}: {text}", options.len())
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, convert::Infallible};

    use super::*;

    /// Bad where all guilty ones are in; skipped where one of `breaks` is in without its partner.
    fn reduce(all: usize, guilty: &[usize], breaks: &[(usize, usize)]) -> (Minimal, usize) {
        let asked = Cell::new(0);
        let mut test = |set: &[usize]| -> Result<StepOutcome, Infallible> {
            asked.set(asked.get() + 1);
            let has = |it: &usize| set.contains(it);
            Ok(match () {
                () if breaks.iter().any(|(a, b)| has(a) && !has(b)) => StepOutcome::Skipped,
                () if guilty.iter().all(has) => StepOutcome::Bad,
                () => StepOutcome::Good,
            })
        };
        let Ok(minimal) = ddmin(all, &mut test);
        (minimal, asked.get())
    }

    #[test]
    fn every_single_one_and_every_pair_is_found() {
        for all in [1, 2, 3, 7, 24] {
            for a in 0..all {
                let (minimal, asked) = reduce(all, &[a], &[]);
                assert_eq!(minimal, Minimal { set: vec![a], open: vec![] });
                assert!(asked <= 12, "{asked} tests for 1 of {all}");
                for b in a + 1..all {
                    let (minimal, asked) = reduce(all, &[a, b], &[]);
                    assert_eq!(minimal, Minimal { set: vec![a, b], open: vec![] }, "of {all}");
                    assert!(asked <= all * all + 3 * all, "{asked} tests for 2 of {all}");
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_tested_is_kept_and_named() {
        // 5 does not build without 9: 9 is not known to be needed.
        let (minimal, _) = reduce(24, &[5], &[(5, 9)]);
        assert_eq!(minimal, Minimal { set: vec![5, 9], open: vec![9] });
        let (minimal, _) = reduce(24, &[5, 17], &[(3, 4)]);
        assert_eq!(minimal, Minimal { set: vec![5, 17], open: vec![] });
    }

    #[test]
    fn an_error_ends_it() {
        let mut calls = 0;
        let ended = ddmin(8, &mut |_| {
            calls += 1;
            Err::<StepOutcome, _>("full")
        });
        assert_eq!((ended, calls), (Err("full"), 1));
    }
}
