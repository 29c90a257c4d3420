//! Options: what differs between two resolved configurations, and candidates between them. A set
//! that is asked for is not the set that kconfig makes of it, so answers belong to the result.

use std::collections::BTreeMap;

use rtproof_results::kernel::{
    bisect::{StepOutcome, Suspect},
    compare::OptionPair,
};
use sha2::{Digest, Sha256};

use super::{
    ddmin::{Minimal, ddmin},
    trial::Rig,
};
use crate::kernel::{KernelError, compare, fragment, kconfig, tool::Log};

/// Options that a step's title names.
const NAMED: usize = 4;

/// A configuration as kconfig made it.
#[derive(Clone, Debug)]
pub(super) struct Resolved {
    pub(super) text: String,
    /// SHA-256 of its options.
    pub(super) id: String,
}

/// Lets the source's own kconfig decide.
pub(super) fn resolve(rig: &Rig<'_>, text: &str, log: &mut Log) -> Result<Resolved, KernelError> {
    rig.configure(text)?;
    let mut observer = |progress: &crate::kernel::tool::Progress| rig.watch.observe(progress);
    log.done("olddefconfig", rig.make.command(&["olddefconfig"])?, &mut observer)?;
    let path = rig.make.objects.join(".config");
    #[expect(clippy::disallowed_methods, reason = "the configuration of our own build")]
    let text = std::fs::read_to_string(&path).map_err(KernelError::io(path))?;
    let lines: String =
        compare::parsed(&text).iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    Ok(Resolved { text, id: digest(lines.as_bytes()) })
}

pub(super) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What differs, and how far it was reduced.
pub(super) struct Reduced {
    pub(super) suspects: Vec<Suspect>,
    pub(super) changed: Vec<OptionPair>,
    pub(super) is_minimal: bool,
    /// The configuration with the suspects alone.
    pub(super) result: Resolved,
    pub(super) notes: Vec<String>,
}

/// Both configurations, and what differs between them.
pub(super) struct Pair {
    pub(super) good: Resolved,
    pub(super) bad: Resolved,
    differ: Vec<OptionPair>,
    kconfig: kconfig::Options,
}

impl Pair {
    /// Refuses two that kconfig makes equal.
    pub(super) fn new(rig: &Rig<'_>, good: Resolved, bad: Resolved) -> Result<Self, KernelError> {
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
            text += &fragment::setting(name, value);
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
        test: &mut dyn FnMut(&Resolved, String) -> Result<StepOutcome, KernelError>,
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
        let mut known: BTreeMap<Vec<usize>, Resolved> = BTreeMap::new();
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
        let got = compare::options(&self.good.text, &result.text);
        let value = |name: &str| got.iter().find(|pair| pair.name == name).map(|of| &of.values[1]);
        for pair in chosen.iter().filter(|pair| value(&pair.name) != Some(&pair.values[1])) {
            notes.push(format!("{} was asked for and kconfig did not keep it", pair.name));
        }
        let is_chosen = |name: &str| chosen.iter().any(|pair| pair.name == name);
        let suspects = set.iter().map(|at| {
            let (prompt, help) = self.kconfig.about(&all[*at].name);
            let is_needed = (!open.contains(at)).then_some(true);
            Suspect::Option { option: all[*at].clone(), prompt, help, is_needed }
        });
        Ok(Reduced {
            suspects: suspects.collect(),
            changed: got.iter().filter(|pair| !is_chosen(&pair.name)).cloned().collect(),
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
