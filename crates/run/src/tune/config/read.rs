//! From the text of the file to [`Config`]; errors have line and column.

use std::{io::Read as _, ops::Range, path::Path};

use serde::Deserialize;
use toml::Spanned;

use rtproof_host::{
    CpuList, Root,
    door::Invalid,
    trusted,
    tune::{Bytes, Change, Compare, Scheduling, UnitState},
};

use super::{Config, ConfigIntent, NamedChange, PATH, RepeatedChange, VERSION, usual_compare};
use crate::parse;

const BYTES_MAX: u64 = 1 << 20;

/// Why a file is refused. Nothing of it is applied then.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub path: String,
    /// Line and column, from 1; `None`: the file as a whole.
    pub at: Option<(usize, usize)>,
    /// What is wrong, and what was expected.
    pub what: String,
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, at, what } = self;
        match at {
            Some((line, column)) => write!(f, "{path}:{line}:{column}: {what}"),
            None => write!(f, "{path}: {what}"),
        }
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Reads a file of the live machine, as `--from FILE` names it; `accept_owner`: also one that
    /// another user owns or can write.
    ///
    /// # Errors
    /// It cannot be read, another user could have written it, or it is wrong; with line and
    /// column.
    pub fn open(path: &Path, accept_owner: bool) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        let read = || {
            let file = trusted::open_if(path, accept_owner)?;
            let mut text = String::new();
            file.take(BYTES_MAX + 1).read_to_string(&mut text)?;
            Ok(text)
        };
        let text = read().map_err(|error: std::io::Error| ConfigError {
            path: name.clone(),
            at: None,
            what: format!("cannot be read: {error}"),
        })?;
        Self::parse(&text, &name)
    }

    /// Reads the file of a machine, be it a folder.
    ///
    /// # Errors
    /// It cannot be read, or is wrong; with line and column.
    pub fn of_machine(root: &Root) -> Result<Self, ConfigError> {
        let text = root.read_text(PATH);
        match text.value() {
            Some(text) => Self::parse(text, PATH),
            None => {
                let what = text.why_unknown().unwrap_or_default();
                Err(ConfigError { path: PATH.into(), at: None, what })
            }
        }
    }

    /// Reads a text; `path` is its name in errors.
    ///
    /// # Errors
    /// What is wrong, with line and column.
    pub fn parse(text: &str, path: &str) -> Result<Self, ConfigError> {
        let error = |wrong: Wrong| ConfigError {
            path: path.into(),
            at: Some(place(text, wrong.at.start)),
            what: wrong.what,
        };
        if text.len() as u64 > BYTES_MAX {
            let what = "larger than 1 MiB; this is not a file of rtproof".into();
            return Err(ConfigError { path: path.into(), at: None, what });
        }
        let file: File = toml::from_str(text).map_err(|wrong| {
            error(Wrong::new(wrong.span().unwrap_or(0..0), wrong.message().replace('\n', ", ")))
        })?;
        match &file.version {
            Some(version) if *version.get_ref() == i64::from(VERSION) => {}
            Some(version) => {
                let what = format!("version {VERSION} is what this rtproof knows");
                return Err(error(Wrong::new(version.span(), what)));
            }
            None => return Err(error(Wrong::new(0..0, format!("no `version = {VERSION}`")))),
        }
        let intent = file.intent.intent().map_err(error)?;
        let mut changes = Vec::with_capacity(file.change.len());
        for change in file.change {
            let at = change.get_ref().kind.as_ref().map_or_else(|| change.span(), |k| k.span());
            let mut repeated = change.into_inner().repeated(at.clone()).map_err(error)?;
            repeated.line = place(text, at.start).0;
            repeated.reason = comment_above(text, at.start);
            changes.push(repeated);
        }
        Ok(Self { intent, changes })
    }
}

/// Line and column of a byte, from 1.
fn place(text: &str, byte: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..byte.min(text.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    (line, String::from_utf8_lossy(&before[start..]).chars().count() + 1)
}

/// The comment right above the table in which a byte is.
fn comment_above(text: &str, byte: usize) -> Vec<String> {
    let head = text.get(..byte).and_then(|head| head.rfind("[[change]]").map(|at| &text[..at]));
    let mut lines: Vec<String> = head
        .unwrap_or_default()
        .lines()
        .rev()
        .map_while(|line| line.trim_start().strip_prefix('#'))
        .map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned())
        .collect();
    lines.reverse();
    lines
}

// The tables of the file as they are written, and what they mean. Every word is optional here, so
// that what is missing or misplaced is reported with its line.

/// What is wrong, and where in the text.
struct Wrong {
    at: Range<usize>,
    what: String,
}

impl Wrong {
    fn new(at: Range<usize>, what: impl Into<String>) -> Self {
        Self { at, what: what.into() }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: Option<Spanned<i64>>,
    #[serde(default)]
    intent: IntentTable,
    #[serde(default)]
    change: Vec<Spanned<Table>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct IntentTable {
    cpus: Option<Spanned<String>>,
    profile: Option<String>,
    priority: Option<Spanned<i64>>,
    period: Option<Spanned<String>>,
    budget: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Table {
    kind: Option<Spanned<String>>,
    #[serde(default)]
    checks: Vec<String>,
    path: Option<Spanned<String>>,
    value: Option<Spanned<String>>,
    compare: Option<Spanned<Compare>>,
    couples: Option<Spanned<Vec<String>>>,
    actions: Option<Spanned<String>>,
    hwirq: Option<Spanned<String>>,
    chip: Option<Spanned<String>>,
    cpus: Option<Spanned<String>>,
    comm: Option<Spanned<String>>,
    unit: Option<Spanned<String>>,
    policy: Option<Spanned<String>>,
    priority: Option<Spanned<i64>>,
    nice: Option<Spanned<i64>>,
    runtime: Option<Spanned<String>>,
    deadline: Option<Spanned<String>>,
    period: Option<Spanned<String>>,
    reset_on_fork: Option<Spanned<bool>>,
    content: Option<Spanned<String>>,
    mode: Option<Spanned<String>>,
    want: Option<Spanned<UnitState>>,
    property: Option<Spanned<String>>,
}

type Word<'a> = (&'static str, Option<Range<usize>>);

/// Kinds, and the words that each may have.
const KINDS: &[(&str, &[&str])] = &[
    ("value", &["path", "value", "compare", "couples"]),
    ("irq", &["actions", "hwirq", "chip", "cpus"]),
    (
        "task",
        &[
            "comm",
            "unit",
            "policy",
            "priority",
            "nice",
            "runtime",
            "deadline",
            "period",
            "reset-on-fork",
            "cpus",
        ],
    ),
    ("hotplug", &["path", "value"]),
    ("folder", &["path"]),
    ("file", &["path", "content", "mode"]),
    ("unit", &["unit", "want"]),
    ("property", &["unit", "property", "value"]),
];

/// Kinds of changes that a reboot does not take away.
const LASTING: [&str; 2] = ["grub-env", "efi-variable"];

const POLICIES: [&str; 7] = ["other", "fifo", "rr", "batch", "idle", "deadline", "ext"];

impl IntentTable {
    fn intent(self) -> Result<ConfigIntent, Wrong> {
        Ok(ConfigIntent {
            cpus: self.cpus.map(|cpus| cpu_list(&cpus)).transpose()?,
            profile: self.profile,
            priority: self.priority.map(|priority| rt_priority(&priority)).transpose()?,
            period_ns: self.period.map(|period| time(&period, parse::period)).transpose()?,
            budget_ns: self.budget.map(|budget| time(&budget, parse::budget)).transpose()?,
        })
    }
}

impl Table {
    /// What it means; `at` is where it is.
    fn repeated(mut self, at: Range<usize>) -> Result<RepeatedChange, Wrong> {
        let kinds = || KINDS.iter().map(|(kind, _)| *kind).collect::<Vec<_>>().join(", ");
        let Some(kind) = self.kind.take() else {
            return Err(Wrong::new(at, format!("no `kind`; there are {}", kinds())));
        };
        let (span, kind) = (kind.span(), kind.into_inner());
        let Some((_, allowed)) = KINDS.iter().find(|(known, _)| *known == kind) else {
            let what = match LASTING.contains(&kind.as_str()) {
                true => format!("kind \"{kind}\" lasts by itself and is not repeated at boot"),
                false => format!("no kind \"{kind}\"; there are {}", kinds()),
            };
            return Err(Wrong::new(span, what));
        };
        for (name, at) in self.words() {
            if let Some(at) = at.filter(|_| !allowed.contains(&name)) {
                let what = format!(
                    "`{name}` does not belong to kind \"{kind}\", which has {}",
                    allowed.join(", ")
                );
                return Err(Wrong::new(at, what));
            }
        }
        let checks = std::mem::take(&mut self.checks);
        let needs = Needs { kind: &kind, at: span };
        let what = match kind.as_str() {
            "irq" => self.irq(&needs)?,
            "task" => self.task(&needs)?,
            _ => NamedChange::Plain(self.plain(&needs)?),
        };
        Ok(RepeatedChange { what, checks, reason: Vec::new(), line: 0 })
    }

    /// Every word but `kind` and `checks`, with its place where it is given.
    fn words(&self) -> Vec<Word<'_>> {
        macro_rules! words {
            ($($name:literal $field:ident),*) => {
                vec![$(($name, self.$field.as_ref().map(Spanned::span))),*]
            };
        }
        words!(
            "path" path, "value" value, "compare" compare, "couples" couples, "actions" actions,
            "hwirq" hwirq, "chip" chip, "cpus" cpus, "comm" comm, "unit" unit, "policy" policy,
            "priority" priority, "nice" nice, "runtime" runtime, "deadline" deadline,
            "period" period, "reset-on-fork" reset_on_fork, "content" content, "mode" mode,
            "want" want, "property" property
        )
    }

    fn irq(self, needs: &Needs<'_>) -> Result<NamedChange, Wrong> {
        if self.actions.is_none() && self.hwirq.is_none() {
            let what = "no `actions` and no `hwirq`: which interrupt? See /proc/interrupts";
            return Err(Wrong::new(needs.at.clone(), what));
        }
        let cpus = needs.word("cpus", self.cpus)?;
        Ok(NamedChange::Irq {
            cpus: some_cpus(&cpus)?,
            actions: self.actions.map(Spanned::into_inner),
            hwirq: self.hwirq.map(Spanned::into_inner),
            chip: self.chip.map(Spanned::into_inner),
        })
    }

    fn task(self, needs: &Needs<'_>) -> Result<NamedChange, Wrong> {
        let comm = needs.word("comm", self.comm.clone())?;
        if comm.get_ref().trim_matches('*').is_empty() {
            return Err(Wrong::new(comm.span(), "a name of a task; `*` alone is every task"));
        }
        if let Some(unit) = self.unit.as_ref().filter(|unit| !unit.get_ref().ends_with(".service"))
        {
            return Err(Wrong::new(unit.span(), "expected a service, e.g. \"plc.service\""));
        }
        let unit = self.unit.clone().map(Spanned::into_inner);
        let set = self.scheduling(needs)?;
        Ok(NamedChange::Task { comm: comm.into_inner(), unit, set })
    }

    fn scheduling(self, needs: &Needs<'_>) -> Result<Scheduling, Wrong> {
        let policy = self.policy.as_ref();
        let is = |names: &[&str]| policy.is_some_and(|p| names.contains(&p.get_ref().as_str()));
        if let Some(policy) = policy.filter(|policy| !POLICIES.contains(&policy.get_ref().as_str()))
        {
            let what =
                format!("no policy \"{}\"; there are {}", policy.get_ref(), POLICIES.join(", "));
            return Err(Wrong::new(policy.span(), what));
        }
        if let (Some(priority), false) = (&self.priority, is(&["fifo", "rr"])) {
            return Err(Wrong::new(
                priority.span(),
                "a priority needs policy = \"fifo\" or \"rr\"",
            ));
        }
        if let (Some(policy), true, None) = (policy, is(&["fifo", "rr"]), &self.priority) {
            return Err(Wrong::new(policy.span(), "this policy needs `priority`, 1 to 99"));
        }
        let nice = self.nice.map(|nice| match i32::try_from(*nice.get_ref()) {
            Ok(value @ -20..=19) => Ok(value),
            _ => Err(Wrong::new(nice.span(), "a nice value is -20 to 19")),
        });
        let times =
            [("runtime", self.runtime), ("deadline", self.deadline), ("period", self.period)];
        let deadline_ns = match (is(&["deadline"]), times) {
            (true, [runtime, deadline, period]) => {
                let ns = |(name, text)| time(&needs.word(name, text)?, parse::time);
                Some([ns(runtime)?, ns(deadline)?, ns(period)?])
            }
            (false, times) => match times.into_iter().find_map(|(_, text)| text) {
                None => None,
                Some(text) => {
                    return Err(Wrong::new(text.span(), "this needs policy = \"deadline\""));
                }
            },
        };
        let set = Scheduling {
            policy: self.policy.map(Spanned::into_inner),
            priority: self.priority.map(|priority| rt_priority(&priority)).transpose()?,
            nice: nice.transpose()?,
            deadline_ns,
            reset_on_fork: self.reset_on_fork.map(Spanned::into_inner),
            cpus: self.cpus.map(|cpus| some_cpus(&cpus)).transpose()?,
        };
        match set == Scheduling::default() {
            true => Err(Wrong::new(needs.at.clone(), "nothing is set: no policy, nice or cpus")),
            false => Ok(set),
        }
    }

    fn plain(self, needs: &Needs<'_>) -> Result<Change, Wrong> {
        const KERNEL: &[&str] = &["/proc/", "/sys/"];
        Ok(match needs.kind {
            "value" => {
                let path = path(needs.word("path", self.path)?, KERNEL)?;
                let compare = self.compare.map(Spanned::into_inner);
                Change::Value {
                    value: line(needs.word("value", self.value)?)?,
                    compare: compare.unwrap_or_else(|| usual_compare(&path)),
                    couples: self.couples.map(Spanned::into_inner).unwrap_or_default(),
                    path,
                }
            }
            "hotplug" => Change::Hotplug {
                path: path(needs.word("path", self.path)?, &["/sys/devices/system/"])?,
                value: line(needs.word("value", self.value)?)?,
            },
            "folder" => Change::Folder {
                path: path(needs.word("path", self.path)?, &["/sys/fs/cgroup/", "/run/"])?,
            },
            "file" => Change::File {
                path: path(needs.word("path", self.path)?, &["/run/"])?,
                content: self.content.map(|content| Bytes(content.into_inner().into_bytes())),
                mode: self.mode.map(|mode| permissions(&mode)).transpose()?,
            },
            "unit" => {
                let want = needs.word("want", self.want)?;
                let state = *want.get_ref();
                if !matches!(state, UnitState::Stopped | UnitState::Started) {
                    let what = "lasts by itself; at boot a unit can be \"stopped\" or \"started\"";
                    return Err(Wrong::new(want.span(), what));
                }
                Change::Unit { unit: line(needs.word("unit", self.unit)?)?, want: state }
            }
            _ => Change::Property {
                unit: line(needs.word("unit", self.unit)?)?,
                property: line(needs.word("property", self.property)?)?,
                value: line(needs.word("value", self.value)?)?,
            },
        })
    }
}

/// A kind that needs words.
struct Needs<'a> {
    kind: &'a str,
    at: Range<usize>,
}

impl Needs<'_> {
    fn word<T>(&self, name: &str, word: Option<Spanned<T>>) -> Result<Spanned<T>, Wrong> {
        let missing =
            || Wrong::new(self.at.clone(), format!("kind \"{}\" needs `{name}`", self.kind));
        word.ok_or_else(missing)
    }
}

fn cpu_list(text: &Spanned<String>) -> Result<CpuList, Wrong> {
    CpuList::parse(text.get_ref(), None)
        .map_err(|why| Wrong::new(text.span(), format!("{why}; expected CPUs like 0-3,8")))
}

fn some_cpus(text: &Spanned<String>) -> Result<CpuList, Wrong> {
    let cpus = cpu_list(text)?;
    match cpus.is_empty() {
        true => Err(Wrong::new(text.span(), "no CPU; expected CPUs like 0-3,8")),
        false => Ok(cpus),
    }
}

fn rt_priority(number: &Spanned<i64>) -> Result<u32, Wrong> {
    match u32::try_from(*number.get_ref()) {
        Ok(priority @ 1..=99) => Ok(priority),
        _ => Err(Wrong::new(number.span(), "a real-time priority is 1 to 99")),
    }
}

fn time(text: &Spanned<String>, parse: fn(&str) -> Result<u64, Invalid>) -> Result<u64, Wrong> {
    parse(text.get_ref()).map_err(|why| Wrong::new(text.span(), why))
}

/// Permissions as text: TOML's own octal numbers are easily written without their `0o`.
fn permissions(text: &Spanned<String>) -> Result<u32, Wrong> {
    match u32::from_str_radix(text.get_ref(), 8) {
        Ok(mode) if mode <= 0o7777 => Ok(mode),
        _ => Err(Wrong::new(text.span(), "expected permissions like \"0644\"")),
    }
}

/// A path below one of some folders.
fn path(text: Spanned<String>, tops: &[&str]) -> Result<String, Wrong> {
    let is_below = tops
        .iter()
        .any(|top| text.get_ref().strip_prefix(top).is_some_and(|rest| !rest.is_empty()));
    let is_plain = !text.get_ref().split('/').any(|part| part == ".." || part == ".")
        && !text.get_ref().contains(['\0', '\n']);
    match is_below && is_plain {
        true => Ok(text.into_inner()),
        false => {
            let what = format!("expected a path below {}, without ..", tops.join(" or "));
            Err(Wrong::new(text.span(), what))
        }
    }
}

/// A text of one line.
fn line(text: Spanned<String>) -> Result<String, Wrong> {
    match text.get_ref().contains(['\0', '\n']) {
        true => Err(Wrong::new(text.span(), "expected one line")),
        false => Ok(text.into_inner()),
    }
}
