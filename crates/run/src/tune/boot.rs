//! The boot part of tuning: the words of a plan as the boot loader's entry takes them, and the
//! words of the entry that is there.

use std::{
    io::{self, Read},
    path::Path,
};

use anyhow::Context;
use serde::Deserialize;

use rtproof_host::{
    CpuList, Facts, Root,
    boot::{self, Loader, OwnEntryState, TITLE, Word, cmdline},
    door::{Invalid, usage},
    trusted,
    tune::{Bytes, Change, ChangeError, Compare, Machine, State},
};
use rtproof_judge::{
    Intent,
    plan::{BootWord, Conflict, Plan, Step},
    report,
    verify::{self, Verified, WantedWord, WordEffect},
};
use rtproof_results::{
    IntentShown,
    tune::{BootPreview, BootStanding, EntryKernel, PLAN_SCHEMA, PlanDocument, Previewed},
};

/// Words of rtproof's own, which the kernel does not know.
const OWN: &str = "rtproof.";

/// Why a plan's words cannot be tried.
const IS_DEFAULT: &str = "the entry of rtproof is the default: take it back first, with rtproof \
                          tune undo --all, to try another";

/// A word as the boot loader's entry takes it.
pub fn of_plan(word: &BootWord) -> Word {
    match (word.removes, word.parameter.contains('=')) {
        (true, true) => Word::set(&word.parameter),
        (true, false) => Word::remove(&word.parameter),
        (false, _) => Word::add(&word.parameter),
    }
}

/// Where the words of a plan would go. Nothing is asked of the boot loader without words.
pub fn preview(root: &Root, facts: &Facts, words: Vec<BootWord>) -> BootPreview {
    if words.is_empty() {
        return BootPreview::default();
    }
    let wanted: Vec<Word> = words.iter().map(of_plan).collect();
    let now = facts.kernel.cmdline.value().map(|line| line.text.clone());
    let mut preview = BootPreview { words, now, ..BootPreview::default() };
    match boot::detect(root) {
        Ok(loader) => {
            preview.loader = Some(loader.name.clone());
            if let Some(base) = &loader.base {
                preview.now = Some(base.cmdline.clone());
            }
            match loader.real_time(root, &wanted) {
                Ok(changes) => {
                    preview.then = Some(changes.cmdline);
                    preview.entry = loader.no_entry.is_none().then(|| TITLE.to_owned());
                    preview.printed = changes.printed;
                    let is_default = loader.entry_state(root) == Ok(OwnEntryState::Default);
                    let is_default = is_default.then(|| IS_DEFAULT.to_owned());
                    preview.refused = loader.no_entry.or(is_default).or(loader.no_trial);
                }
                Err(error) => preview.refused = Some(error.to_string()),
            }
        }
        Err(error) => preview.refused = Some(error.to_string()),
    }
    if preview.then.is_none() {
        let edited = preview.now.as_deref().map(|now| cmdline::edited(now, &wanted));
        preview.then = edited.and_then(Result::ok);
    }
    preview
}

/// A word of the command line of `tune trial` and `tune verify`.
///
/// # Errors
/// Usage: an invalid word.
pub fn word(text: &str) -> anyhow::Result<WantedWord> {
    let key = text.split('=').next().unwrap_or_default();
    if key.is_empty() || key.contains(char::is_whitespace) {
        let why = "no kernel parameter; write name or name=value, e.g. isolcpus=2-3";
        return Err(usage(format!("{text}: {why}")));
    }
    Ok(WantedWord { parameter: cmdline::shortened(text), removes: false })
}

/// Words of the rtproof entry that the default entry lacks; empty without an entry.
pub fn requested_words(root: &Root) -> anyhow::Result<Vec<WantedWord>> {
    let loader = boot::detect(root)?;
    let Some(entry) = loader.entry(root)? else { return Ok(Vec::new()) };
    let tokens = |line: &str| -> Vec<String> {
        let kernel = cmdline::split(line).into_iter().map(|token| token.text);
        kernel.take_while(|word| word != "--").collect()
    };
    let base = loader.default.as_ref().or(loader.base.as_ref());
    let (ours, others) = (tokens(&entry.cmdline), tokens(base.map_or("", |it| &it.cmdline)));
    let name = |word: &str| word.split('=').next().unwrap_or_default().replace('-', "_");
    let new = ours.iter().filter(|word| !others.contains(word) && !word.starts_with(OWN));
    let new = new.map(|word| WantedWord { parameter: word.clone(), removes: false });
    let gone = others.iter().map(|word| name(word));
    let gone = gone.filter(|key| !ours.iter().any(|word| name(word) == *key));
    Ok(new.chain(gone.map(|key| WantedWord { parameter: key, removes: true })).collect())
}

/// What became of words, with what the kernel shows of them.
pub fn verified(root: &Root, facts: &Facts, asked: &[WantedWord]) -> Vec<Verified> {
    let shown = verify::paths(asked).into_iter().map(|path| {
        let reading = root.trimmed(&path);
        (path, reading)
    });
    verify::words(facts, asked, &shown.collect())
}

/// The kernel of the entry of rtproof; `None` without one, and where it is that of the default.
pub fn kernel(root: &Root, loader: &Loader) -> anyhow::Result<Option<EntryKernel>> {
    let Some(entry) = loader.entry(root)? else { return Ok(None) };
    let default = loader.default.as_ref().or(loader.base.as_ref());
    if default.is_some_and(|default| default.kernel == entry.kernel) {
        return Ok(None);
    }
    Ok(Some(EntryKernel {
        release: boot::release_of(&entry.kernel),
        file: entry.kernel,
        running: root.trimmed("/proc/sys/kernel/osrelease").value().cloned(),
    }))
}

/// Status of the rtproof entry; `None` without one.
pub fn entry_standing(machine: &Machine<'_>) -> anyhow::Result<Option<BootStanding>> {
    let root = machine.root();
    let loader = boot::detect(root)?;
    let standing = loader.entry_state(root)?;
    if standing == OwnEntryState::Absent {
        return Ok(None);
    }
    let asked = requested_words(root)?;
    let cmdline = root.trimmed("/proc/cmdline");
    let running = cmdline.value().map(|line| cmdline::split(line)).unwrap_or_default();
    let has = |asked: &WantedWord| match asked.removes {
        true => !running.iter().any(|it| it.text.split('=').next() == Some(&asked.parameter)),
        false => running.iter().any(|it| it.text == asked.parameter),
    };
    let kernel = kernel(root, &loader)?;
    let runs = kernel.as_ref().map(EntryKernel::is_running);
    let is_seen = !asked.is_empty() || runs == Some(Some(true));
    let is_running = is_seen && runs != Some(Some(false)) && asked.iter().all(has);
    let words = asked.iter().map(|asked| match asked.removes {
        true => format!("without {}", asked.parameter),
        false => asked.parameter.clone(),
    });
    Ok(Some(BootStanding {
        loader: loader.name,
        words: words.collect(),
        standing: standing.into(),
        kernel,
        is_running,
    }))
}

/// Words that are not on the command line of the running kernel.
pub fn missing(verified: &[Verified]) -> Vec<&str> {
    let missing = verified.iter().filter(|it| it.effect == WordEffect::Missing);
    missing.map(|it| it.parameter.as_str()).collect()
}

// A plan with what the machine holds now: what `tune plan` shows, what `--json` prints and what
// `tune apply --plan FILE` takes to the letter.

/// Looks up what each step finds. What is as wanted already is counted and left out.
pub fn document(machine: &Machine<'_>, facts: &Facts, intent: &Intent, plan: Plan) -> PlanDocument {
    let all = plan.steps.len();
    let mut steps: Vec<Previewed> =
        plan.steps.into_iter().filter_map(|step| preview_step(machine, step)).collect();
    for at in 1..steps.len() {
        let (earlier, rest) = steps.split_at_mut(at);
        if rest[0].unknown.is_some() && comes_with(machine, earlier, &rest[0].step.change) {
            rest[0].unknown = Some("not there yet: a change before this one makes it".into());
        }
    }
    PlanDocument {
        schema: PLAN_SCHEMA.into(),
        machine: report::MachineSummary::of(facts),
        intent: IntentShown::of(intent),
        done: all - steps.len(),
        steps,
        boot: preview(machine.root(), facts, plan.boot),
        instructions: plan.instructions,
        left_out: plan.left_out,
        conflicts: plan.conflicts,
    }
}

/// A step with what is there; `None`: it is as wanted.
fn preview_step(machine: &Machine<'_>, step: Step) -> Option<Previewed> {
    let named = machine.named(step.change.clone());
    let found = named
        .and_then(|change| Ok((machine.state(&change)?, change)))
        .or_else(|error| of_capture(machine, &step.change).ok_or(error));
    match found {
        Ok((state, change)) if machine.is_done(&change, &state) => None,
        Ok((state, change)) => {
            let step = Step { change, ..step };
            Some(Previewed { step, before: Some(state), unknown: None })
        }
        Err(error) => Some(Previewed { step, before: None, unknown: Some(error.to_string()) }),
    }
}

/// Whether a change is of a file that is not there, and that an earlier change of its plan makes.
pub fn comes_with(machine: &Machine<'_>, earlier: &[Previewed], change: &Change) -> bool {
    let Change::Value { path, .. } = change else { return false };
    let brings = |it: &Previewed| it.step.change.brings(path);
    matches!(machine.state(change), Err(ChangeError::Missing { .. })) && earlier.iter().any(brings)
}

/// A capture keeps the CPUs of an interrupt, and not what names it from boot to boot.
fn of_capture(machine: &Machine<'_>, change: &Change) -> Option<(State, Change)> {
    let Change::Irq { irq, .. } = change else { return None };
    let root = machine.root();
    if root.is_live() || root.list_dir("/sys/kernel/irq").value().is_some() {
        return None;
    }
    let bytes = root.read_bytes(&format!("/proc/irq/{}/smp_affinity_list", irq.number));
    let bytes = Bytes(bytes.value()?.clone());
    Some((State::Value { bytes, couples: Vec::new() }, change.clone()))
}

/// Whether what is there is what was there: times, and how a list of CPUs is written, aside.
pub fn is_same(change: &Change, one: &State, other: &State) -> bool {
    match (one, other) {
        (State::Value { bytes: one, .. }, State::Value { bytes: other, .. }) => {
            is_same_value(change, &one.text(), &other.text())
        }
        (
            State::File { bytes: b1, mode: m1, uid: u1, gid: g1, .. },
            State::File { bytes: b2, mode: m2, uid: u2, gid: g2, .. },
        ) => (b1, m1, u1, g1) == (b2, m2, u2, g2),
        // What moves with the switch moves all the time.
        (State::Hotplug { bytes: one, .. }, State::Hotplug { bytes: other, .. }) => one == other,
        (one, other) => one == other,
    }
}

fn is_same_value(change: &Change, one: &str, other: &str) -> bool {
    if one.trim_end() == other.trim_end() {
        return true;
    }
    let list = |text: &str| CpuList::parse(text.trim(), None).ok();
    match change {
        Change::Irq { .. } | Change::Value { compare: Compare::CpuList, .. } => {
            list(one).is_some_and(|one| list(other) == Some(one))
        }
        _ => false,
    }
}

// A plan that `tune plan --json` printed, taken to the letter: it is applied unchanged, or not
// at all when the machine is no longer what it was made for.

/// Largest plan read: one of a thousand CPUs with every knob is below 8 MiB.
const BYTES_MAX: u64 = 64 << 20;

/// What is taken of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct StoredPlan {
    schema: String,
    pub steps: Vec<Previewed>,
    #[serde(default)]
    pub boot: BootPreview,
    #[serde(default)]
    pub conflicts: Vec<Conflict>,
}

/// Reads a plan; `-` is stdin; `accept_owner`: also one that another user owns or can write.
///
/// # Errors
/// Usage: it is none, or it has a step that rtproof never makes. Another user could have written
/// it.
pub fn read_plan(path: &Path, accept_owner: bool) -> anyhow::Result<StoredPlan> {
    let text =
        text(path, accept_owner).with_context(|| format!("{}: cannot be read", path.display()))?;
    from_text(&text).map_err(|why| {
        let how = "give a file that rtproof tune plan --json printed";
        usage(format!("{}: {why}; {how}", path.display()))
    })
}

fn text(path: &Path, accept_owner: bool) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    if path == Path::new("-") {
        if !accept_owner {
            trusted::given(io::stdin())?;
        }
        io::stdin().lock().take(BYTES_MAX).read_to_end(&mut text)?;
    } else {
        let file = trusted::open_if(path, accept_owner)?;
        file.take(BYTES_MAX).read_to_end(&mut text)?;
    }
    Ok(text)
}

/// A plan from its text.
///
/// # Errors
/// No plan, or one with a step that rtproof never makes.
pub fn from_text(text: &[u8]) -> Result<StoredPlan, Invalid> {
    let value: serde_json::Value =
        serde_json::from_slice(text).map_err(|error| format!("not JSON: {error}"))?;
    match value.get("schema").and_then(|schema| schema.as_str()) {
        Some(PLAN_SCHEMA) => {}
        Some(other) => return Err(format!("schema {other}, expected {PLAN_SCHEMA}").into()),
        None => return Err(format!("no schema, expected {PLAN_SCHEMA}").into()),
    }
    let stored = StoredPlan::deserialize(value).map_err(|error| format!("not a plan: {error}"))?;
    stored.steps.iter().try_for_each(|it| it.step.change.may_be_made())?;
    Ok(stored)
}

/// The steps that are still to be made. Those that the machine has by now are left out.
///
/// # Errors
/// The first step that finds something else than the plan says.
pub fn still_to_do(machine: &Machine<'_>, steps: Vec<Previewed>) -> anyhow::Result<Vec<Previewed>> {
    let mut left = Vec::new();
    for (at, it) in steps.iter().enumerate() {
        let change = &it.step.change;
        let target = change.target();
        if it.before.is_none() && comes_with(machine, &steps[..at], change) {
            left.push(it.clone());
            continue;
        }
        let found = machine.state(change)?;
        if machine.is_done(change, &found) {
            continue;
        }
        let Some(planned) = &it.before else {
            anyhow::bail!(
                "{target}: the plan was made without knowing what was there; make it anew as root"
            );
        };
        if !is_same(change, planned, &found) {
            let was = |state: &State| change.before(state);
            anyhow::bail!(
                "{target}: holds {}, and held {} when the plan was made; make the plan anew",
                was(&found),
                was(planned)
            );
        }
        left.push(it.clone());
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_plan_is_reported() {
        for (text, word) in [
            ("", "not JSON"),
            ("[]", "no schema"),
            ("{\"schema\": \"rtproof/check/2\"}", "rtproof/check/2"),
            ("{\"schema\": \"rtproof/plan/1\"}", "steps"),
            ("{\"schema\": \"rtproof/plan/1\", \"steps\": [{}]}", "change"),
        ] {
            let error = from_text(text.as_bytes()).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
        assert!(from_text(b"{\"schema\": \"rtproof/plan/1\", \"steps\": []}").is_ok());
    }
}
