//! A configuration: a base, what the checks ask for, and what the source's own kconfig makes of
//! both. The checks then judge the result again, so that nothing is reported as set that is not.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use rtproof_host::{
    Facts, Root,
    door::{self, write_whole},
    facts::kernel::Kernel as KernelFacts,
};
use rtproof_judge::{
    Impact, Intent, checks,
    plan::{BuildOption, Selection, build_options},
};
use rtproof_results::kernel::{CONFIG_SCHEMA, ChangedOption, Configured, OptionOutcome, OptionRow};

use crate::make::Make;
use crate::tool::{Log, OnProgress, tool};
use crate::{KernelError, kconfig};

/// Rounds in which the checks may ask for more; each option is asked once.
const ROUNDS_MAX: usize = 4;

/// Lines for localmodconfig, which asks about options that are new.
const ANSWERS: usize = 20_000;

type Options = BTreeMap<String, String>;

/// Where the configuration begins.
#[derive(Clone, Debug)]
pub enum Base {
    /// A file: plain, gzip or xz.
    File(PathBuf),
    /// Bytes of one, and where they were read.
    Bytes(Vec<u8>, String),
    /// A target of the source's makefile, e.g. `tinyconfig`.
    Target(String),
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub base: Base,
    /// How the source is configured; `None`: no source, the fragment only.
    pub make: Option<Make>,
    /// Folder of the results.
    pub place: &'a Path,
    /// The machine; its kernel is replaced by the configuration.
    pub facts: &'a Facts,
    /// What it is for.
    pub intent: &'a Intent,
    /// Checks that take part.
    pub selection: &'a Selection,
    /// Whether it is to boot as a guest.
    pub guest: bool,
    /// Whether core scheduling is asked for.
    pub core_sched: bool,
    /// /proc/modules of the machine, to keep only what it has.
    pub modules: Option<Vec<u8>>,
}

/// A configuration, and the facts of a kernel that has it.
#[derive(Clone, Debug)]
struct Resolved {
    options: Options,
    facts: KernelFacts,
}

/// One option that is asked for.
#[derive(Clone, Debug)]
struct WantedOption {
    option: BuildOption,
    impact: Option<Impact>,
}

impl WantedOption {
    fn pair(&self) -> (&str, &str) {
        self.option.option.split_once('=').unwrap_or((&self.option.option, "y"))
    }

    fn reason(&self) -> String {
        let BuildOption { check, why, source, .. } = &self.option;
        format!("{check}: {why}. Source: {source}.").replace(char::is_control, " ")
    }
}

/// Adds the wanted options to the base; resolves them by kconfig where a source tree is given.
///
/// # Errors
/// The base cannot be read, kconfig fails, a file cannot be written.
pub fn configure(
    request: &Request<'_>,
    observer: OnProgress<'_>,
) -> Result<Configured, KernelError> {
    let place = request.place;
    fs::create_dir_all(place).map_err(KernelError::io(place))?;
    let mut log = Log::begin(place.join("config.log"))?;
    let mut notes = Vec::new();
    let Some(make) = &request.make else {
        let (text, base) = base_text(request, &mut log, observer)?;
        let before = parsed(&text, place, request)?;
        let asked = open_options(request, &before, &[]);
        let lines = write_fragment(request, &base, &asked, None)?;
        return Ok(result(request, base, None, &before.options, None, &asked, &lines, notes));
    };
    make.check_arch()?;
    let objects = &make.objects;
    fs::create_dir_all(objects).map_err(KernelError::io(objects))?;
    let version = make.ask("kernelversion")?;
    let dot_config = objects.join(".config");
    let base = match &request.base {
        Base::Target(target) => {
            log.done(target, make.command(&[target])?, observer)?;
            target.clone()
        }
        _ => {
            let (text, base) = base_text(request, &mut log, observer)?;
            // kconfig takes any file, and passes over each line that it does not know.
            parsed(&text, place, request)?;
            make.check_config(Path::new(&base), &text)?;
            write(&dot_config, &without_keys(&text, &make.tree, &mut notes))?;
            base
        }
    };
    if let Some(modules) = &request.modules {
        minimal(make, modules, place, &mut log, observer)?;
    }
    log.done("olddefconfig", make.command(&["olddefconfig"])?, observer)?;
    let text = read(&dot_config)?;
    let before = parsed(&text, place, request)?;
    let mut asked_all = Vec::new();
    let mut current = before.clone();
    for _ in 0..ROUNDS_MAX {
        let more = open_options(request, &current, &asked_all);
        if more.is_empty() && !asked_all.is_empty() {
            break;
        }
        asked_all.extend(more);
        write(&dot_config, &merged(&text, &asked_all))?;
        log.done("olddefconfig", make.command(&["olddefconfig"])?, observer)?;
        current = parsed(&read(&dot_config)?, place, request)?;
        if asked_all.is_empty() {
            break;
        }
    }
    let lines = write_fragment(request, &base, &asked_all, Some(&version))?;
    let after = Some((version.as_str(), dot_config.as_path(), &current.options));
    Ok(result(request, base, after, &before.options, Some(make), &asked_all, &lines, notes))
}

/// The base as text, and its name.
fn base_text(
    request: &Request<'_>,
    log: &mut Log,
    observer: OnProgress<'_>,
) -> Result<(String, String), KernelError> {
    let (bytes, name) = match &request.base {
        Base::Target(target) => {
            return Err(KernelError::path(target, "a target of a source, and no source is given"));
        }
        Base::Bytes(bytes, name) => (bytes.clone(), name.clone()),
        Base::File(path) => {
            let bytes = door::read_bytes(path, crate::CONFIG_MAX);
            (bytes.map_err(KernelError::io(path))?, path.display().to_string())
        }
    };
    let program = match bytes.as_slice() {
        [0x1f, 0x8b, ..] => "gzip",
        [0xfd, b'7', b'z', ..] => "xz",
        _ => return Ok((String::from_utf8_lossy(&bytes).into_owned(), name)),
    };
    let packed = request.place.join("base.part");
    write_bytes(&packed, &bytes)?;
    let plain = request.place.join("base.plain.part");
    let mut command = tool("sh", "dash")?;
    command.args(["-c", "exec \"$0\" -dc < \"$1\" > \"$2\"", program]).arg(&packed).arg(&plain);
    tool(program, "xz-utils")?;
    let text = log.done("unpacking the base", command, observer).and_then(|_| read(&plain));
    for path in [packed, plain] {
        // They are ours, and may not be there.
        let _ = fs::remove_file(path);
    }
    Ok((text?, name))
}

/// A kernel of which only the configuration is known, as the host reads one.
fn parsed(text: &str, place: &Path, request: &Request<'_>) -> Result<Resolved, KernelError> {
    let path = place.join("config.part");
    write(&path, text)?;
    let root = Root::open_path(&path);
    // It is ours.
    let _ = fs::remove_file(&path);
    let name = match &request.base {
        Base::File(path) => path.display().to_string(),
        Base::Bytes(_, name) | Base::Target(name) => name.clone(),
    };
    let kernel = root.map(|root| Facts::read(&root).kernel).ok();
    let options = kernel.as_ref().and_then(|kernel| kernel.config.value().cloned());
    match (kernel, options) {
        (Some(facts), Some(options)) => Ok(Resolved { options, facts }),
        // What the reader of captures says of it would speak of another file.
        _ => Err(KernelError::path(name, "no configuration of a kernel")),
    }
}

/// What is asked for and was not yet.
fn open_options(
    request: &Request<'_>,
    kernel: &Resolved,
    known: &[WantedOption],
) -> Vec<WantedOption> {
    let facts = Facts { kernel: kernel.facts.clone(), ..request.facts.clone() };
    let impact = |id: &str| checks::by_id(id).map(|check| check.impact);
    let own = |name: &str, check: &str, why: &str, source: &str| WantedOption {
        option: BuildOption {
            option: if name.contains('=') { name.into() } else { format!("{name}=y") },
            check: check.into(),
            why: why.into(),
            source: source.into(),
        },
        impact: None,
    };
    let mut all: Vec<WantedOption> = Vec::new();
    if request.guest {
        let source = "the help of the options in Kconfig";
        all.extend(crate::guest_rows().map(|(name, why)| own(name, "guest", why, source)));
    }
    if request.core_sched {
        let why = "tasks with a cookie share a core with no other (`rtproof run --core-sched`)";
        let source = "Documentation/admin-guide/hw-vuln/core-scheduling.rst";
        all.push(own("SCHED_CORE", "core-sched", why, source));
    }
    let of_checks = build_options(&facts, request.intent, request.selection).unwrap_or_default();
    all.extend(
        of_checks.into_iter().map(|option| WantedOption { impact: impact(&option.check), option }),
    );
    all.retain(|one| known.iter().all(|is| is.pair().0 != one.pair().0));
    all
}

/// Writes the fragment; the lines that are in it.
fn write_fragment(
    request: &Request<'_>,
    base: &str,
    asked: &[WantedOption],
    version: Option<&str>,
) -> Result<Vec<FragmentLine>, KernelError> {
    let pairs = asked.iter().map(|one| (one.option.option.clone(), one.reason()));
    let (lines, _) = fragment_lines(pairs.collect());
    let text = format!(
        "# Made by rtproof {} (rtproof kernel config); make it anew rather than edit it.\n\
         # Profile {}, base {}{}.\n{}",
        env!("CARGO_PKG_VERSION"),
        request.intent.profile.name,
        base.replace(char::is_control, " "),
        version.map_or_else(String::new, |version| format!(", for Linux {version}")),
        fragment_text(&lines)
    );
    write(&fragment_path(request.place), &text)?;
    Ok(lines)
}

fn fragment_path(place: &Path) -> PathBuf {
    place.join("rtproof.config")
}

/// The base with the options in place of its own.
fn merged(base: &str, asked: &[WantedOption]) -> String {
    let names: BTreeSet<&str> = asked.iter().map(|one| one.pair().0).collect();
    let name_of = |line: &str| {
        let rest = line.strip_prefix("CONFIG_").or_else(|| line.strip_prefix("# CONFIG_"))?;
        rest.split(['=', ' ']).next().map(str::to_owned)
    };
    let kept = base.lines().filter(|line| !name_of(line).is_some_and(|it| names.contains(&*it)));
    let mut text: String = kept.flat_map(|line| [line, "\n"]).collect();
    for one in asked {
        let (name, value) = one.pair();
        text += &setting(name, value);
    }
    text
}

/// Without keys of the distribution that are not in the source: the build stops at them.
fn without_keys(text: &str, tree: &Path, notes: &mut Vec<String>) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        let key = ["CONFIG_SYSTEM_TRUSTED_KEYS=\"", "CONFIG_SYSTEM_REVOCATION_KEYS=\""]
            .iter()
            .find_map(|name| Some((*name, line.strip_prefix(name)?.strip_suffix('"')?)));
        match key {
            Some((name, file)) if !file.is_empty() && !tree.join(file).exists() => {
                notes.push(format!(
                    "{}{file}\" is left empty: this source has no such file, and the build would \
                     stop at it",
                    name
                ));
                lines += &format!("{name}\"\n");
            }
            _ => lines.extend([line, "\n"]),
        }
    }
    lines
}

/// Keeps the modules that the machine has loaded.
fn minimal(
    make: &Make,
    modules: &[u8],
    place: &Path,
    log: &mut Log,
    observer: OnProgress<'_>,
) -> Result<(), KernelError> {
    let (list, answers) = (place.join("modules.part"), place.join("answers.part"));
    write_bytes(&list, modules)?;
    write_bytes(&answers, "\n".repeat(ANSWERS).as_bytes())?;
    let mut run = || {
        let mut command = make.command(&["localmodconfig"])?;
        let input = door::read(&answers).map_err(KernelError::io(&answers))?;
        command.env("LSMOD", &list).stdin(Stdio::from(input));
        log.done("localmodconfig", command, observer)
    };
    let done = run();
    for path in [list, answers] {
        // They are ours.
        let _ = fs::remove_file(path);
    }
    done.map(|_| ())
}

#[expect(clippy::too_many_arguments, reason = "the parts of one answer, made in one place")]
fn result(
    request: &Request<'_>,
    base: String,
    after: Option<(&str, &Path, &Options)>,
    before: &Options,
    make: Option<&Make>,
    asked: &[WantedOption],
    lines: &[FragmentLine],
    mut notes: Vec<String>,
) -> Configured {
    let kconfig = make.map(|make| kconfig::read(&make.tree, &make.srcarch()));
    let value = |of: &Options, name: &str| of.get(name).cloned().unwrap_or_else(|| "n".into());
    let mut options = Vec::new();
    for one in asked {
        let (name, wanted) = one.pair();
        if !lines.iter().any(|line| line.name == name) {
            continue;
        }
        let found = after.map(|(_, _, config)| value(config, name));
        // A module serves as well as what is built in, and a profile asks for no more.
        let fate = match &found {
            None => OptionOutcome::Unresolved,
            Some(found) if found == wanted || (wanted == "y" && found == "m") => {
                OptionOutcome::Survived
            }
            Some(_) => OptionOutcome::Dropped,
        };
        let because = match (fate, &kconfig, after) {
            (OptionOutcome::Dropped, Some(kconfig), Some((_, _, config))) => {
                kconfig.why_not(name, wanted, config)
            }
            _ => Vec::new(),
        };
        options.push(OptionRow {
            name: name.into(),
            wanted: wanted.into(),
            before: value(before, name),
            after: found,
            fate,
            because,
            check: one.option.check.clone(),
            why: one.option.why.clone(),
            source: one.option.source.clone(),
            costs: one.impact.map(|impact| impact.text().to_owned()),
        });
    }
    let current = after.map_or(before, |(_, _, config)| config);
    if value(current, "PREEMPT_RT") == "n" && !options.iter().any(|row| row.name == "PREEMPT_RT") {
        notes.push(
            "PREEMPT_RT is not set and nothing asked for it: the check preempt-rt is skipped, or \
             cannot read the preemption model from this configuration"
                .into(),
        );
    }
    let changed = after.map(|(_, _, config)| changed(before, config, asked)).unwrap_or_default();
    Configured {
        schema: CONFIG_SCHEMA,
        base,
        kernel_source: make.map(|make| make.tree.display().to_string()),
        version: after.map(|(version, ..)| version.to_owned()),
        fragment: fragment_path(request.place).display().to_string(),
        config: after.map(|(_, path, _)| path.display().to_string()),
        options,
        changed,
        open: open(request, before, current),
        notes,
    }
}

/// Options that are not among those asked for and differ.
fn changed(before: &Options, after: &Options, asked: &[WantedOption]) -> Vec<ChangedOption> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let is_asked = |name: &str| asked.iter().any(|one| one.pair().0 == name);
    let value = |of: &Options, name: &str| of.get(name).cloned().unwrap_or_else(|| "n".into());
    let all = names.into_iter().filter(|name| !is_asked(name)).map(|name| ChangedOption {
        name: name.clone(),
        before: value(before, name),
        after: value(after, name),
    });
    all.filter(|it| it.before != it.after).collect()
}

/// What the checks report on and ask neither way.
fn open(request: &Request<'_>, before: &Options, current: &Options) -> Vec<OptionRow> {
    let mut rows = Vec::new();
    for check in checks::all() {
        let checks::Judge::Build(build) = &check.judge else { continue };
        if !build.is_open(request.intent) {
            continue;
        }
        for name in build.options {
            let value = |of: &Options| of.get(*name).cloned().unwrap_or_else(|| "n".into());
            rows.push(OptionRow {
                name: (*name).into(),
                wanted: String::new(),
                before: value(before),
                after: Some(value(current)),
                fate: OptionOutcome::Open,
                because: Vec::new(),
                check: check.id.into(),
                why: check.why.into(),
                source: check.source.into(),
                costs: None,
            });
        }
    }
    rows
}

fn read(path: &Path) -> Result<String, KernelError> {
    let bytes = door::read_bytes(path, crate::CONFIG_MAX).map_err(KernelError::io(path))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn write(path: &Path, text: &str) -> Result<(), KernelError> {
    write_bytes(path, text.as_bytes())
}

fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), KernelError> {
    write_whole(path, |to| Ok(to.write_all(bytes)?))
        .map_err(|error| KernelError::path(path, format!("{error:#}")))
}

// Options of a kernel's build as a fragment of its configuration: each once, with all its reasons.
// `tune export` and `kernel config` write the same.

/// An option of the fragment: its value, and the lines of its comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FragmentLine {
    pub name: String,
    /// `n`: not set.
    pub value: String,
    /// Why, one line each.
    pub reasons: Vec<String>,
}

/// Each option once; and the options that no line can express, with the reason.
pub fn fragment_lines(asked: Vec<(String, String)>) -> (Vec<FragmentLine>, Vec<(String, String)>) {
    let mut missed = Vec::new();
    let mut lines: Vec<FragmentLine> = Vec::new();
    for (option, reason) in asked {
        let Some((name, value)) =
            option.split_once('=').filter(|(name, value)| is_name(name) && is_value(value))
        else {
            missed.push((option, "it is not NAME=value of the kernel's configuration".into()));
            continue;
        };
        match lines.iter_mut().find(|line| line.name == name) {
            None => {
                let (name, value) = (name.to_owned(), value.to_owned());
                lines.push(FragmentLine { name, value, reasons: vec![reason] });
            }
            Some(line) if line.value == value => {
                if !line.reasons.contains(&reason) {
                    line.reasons.push(reason);
                }
            }
            Some(line) => {
                let why = format!("another reason wants {name}={}", line.value);
                missed.push((option, why));
            }
        }
    }
    (lines, missed)
}

/// The lines as text, a comment before each group of one reason.
pub fn fragment_text(lines: &[FragmentLine]) -> String {
    let mut text = String::new();
    let mut last: &[String] = &[];
    for FragmentLine { name, value, reasons } in lines {
        if reasons != last {
            for reason in reasons {
                text += &format!("\n# {reason}");
            }
            text.push('\n');
            last = reasons;
        }
        text += &setting(name, value);
    }
    text
}

/// One option as a configuration has it, with the end of its line.
pub fn setting(name: &str, value: &str) -> String {
    match value {
        "n" => format!("# CONFIG_{name} is not set\n"),
        value => format!("CONFIG_{name}={value}\n"),
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// y, m, n, a number, or a string in its quotes.
fn is_value(value: &str) -> bool {
    let number = value.strip_prefix('-').unwrap_or(value);
    let is_hex = number.strip_prefix("0x").is_some_and(|hex| u64::from_str_radix(hex, 16).is_ok());
    let inner = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let is_string = inner
        .is_some_and(|text| !text.chars().any(char::is_control) && !text.contains(['"', '\\']));
    matches!(value, "y" | "m" | "n") || number.parse::<u64>().is_ok() || is_hex || is_string
}
