//! The boot part of tuning: the words of a plan as the boot loader's entry takes them, and the
//! words of the entry that is there.

use rtproof_host::{
    Facts, Root,
    boot::{self, Loader, Standing, TITLE, Word, cmdline},
    tune::Machine,
};
use rtproof_judge::{
    plan::BootWord,
    verify::{self, Effect, Verified, WantedWord},
};
use rtproof_results::tune::{
    active::{BootStands, EntryKernel},
    plan::BootPreview,
};

use crate::usage::usage;

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
                    let is_default = loader.standing(root) == Ok(Standing::Default);
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
/// Usage: it is none.
pub fn word(text: &str) -> anyhow::Result<WantedWord> {
    let key = text.split('=').next().unwrap_or_default();
    if key.is_empty() || key.contains(char::is_whitespace) {
        let why = "no kernel parameter; write name or name=value, e.g. isolcpus=2-3";
        return Err(usage(format!("{text}: {why}")));
    }
    Ok(WantedWord { parameter: cmdline::shortened(text), removes: false })
}

/// What the entry of rtproof asks for beside what the default entry has; nothing without one.
pub fn asked(root: &Root) -> anyhow::Result<Vec<WantedWord>> {
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

/// How the entry of rtproof stands; `None` without one.
pub fn stands(machine: &Machine<'_>) -> anyhow::Result<Option<BootStands>> {
    let root = machine.root();
    let loader = boot::detect(root)?;
    let standing = loader.standing(root)?;
    if standing == Standing::Absent {
        return Ok(None);
    }
    let asked = asked(root)?;
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
    Ok(Some(BootStands {
        loader: loader.name,
        words: words.collect(),
        standing: standing.into(),
        kernel,
        is_running,
    }))
}

/// Words that are not on the command line of the running kernel.
pub fn missing(verified: &[Verified]) -> Vec<&str> {
    let missing = verified.iter().filter(|it| it.effect == Effect::Missing);
    missing.map(|it| it.parameter.as_str()).collect()
}
