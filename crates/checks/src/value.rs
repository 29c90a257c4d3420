//! Checks that say "this file holds this value", for one knob.
//!
//! A check says what is wanted of a knob and why. Reading, unknown values, offline CPUs, kernels
//! without the file, evidence and remedies are the same for all of them and are here once.

use rtproof_host::{
    CpuList, Facts, Reading,
    facts::settings::SettingValue,
    knob::{Knob, Place, Scope},
};

use crate::draft::FindingBuilder;
use crate::{Evidence, Finding, Intent, Remedy, Status, When, known, machine};

/// Most values named in a summary.
const NAMED_MAX: usize = 4;

/// Most files whose different values a summary lists.
const FILES_MAX: usize = 8;

/// What is wanted of the value of a knob.
#[derive(Clone, Copy)]
pub struct KnobValue {
    pub want: fn(&Intent) -> Want,
    /// What a missing file means.
    pub absent: Absent,
    /// What else decides whether it concerns the machine; `None`: it always does.
    pub applies: Option<fn(&Facts, &Intent) -> Applies>,
}

/// What a missing file means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// Nothing that is known.
    Unknown,
    /// The machine has no such thing, for this reason: where the folder above it is there and
    /// lacks it.
    NoSuchThing(&'static str),
    /// The kernel is built without this option: where its configuration is known.
    WithoutOption(&'static str),
}

/// Whether a rule concerns the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applies {
    Yes,
    /// It does not: what shows it, and the reason.
    No(Evidence, String),
    /// Unknown: what was asked, and why there is no answer.
    Unknown(Evidence, String),
}

/// What is wanted of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    accept: Accept,
    otherwise: Status,
    set: Option<String>,
    text: Option<String>,
}

/// Values that are as wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Accept {
    Any,
    OneOf(Vec<String>),
    AtMost(i64),
    AtLeast(i64),
    MaskWithin(CpuList),
}

impl Want {
    const fn new(accept: Accept) -> Self {
        Self { accept, otherwise: Status::Bad, set: None, text: None }
    }

    /// This value; another is bad. It is also what to write.
    pub fn is(value: impl Into<String>) -> Self {
        let value = value.into();
        Self { set: Some(value.clone()), ..Self::new(Accept::OneOf(vec![value])) }
    }

    /// One of these; the first is what to write.
    pub fn one_of(values: &[&str]) -> Self {
        let values: Vec<String> = values.iter().map(|&value| value.to_owned()).collect();
        Self { set: values.first().cloned(), ..Self::new(Accept::OneOf(values)) }
    }

    /// A number that is at most this.
    pub fn at_most(most: i64) -> Self {
        Self { set: Some(most.to_string()), ..Self::new(Accept::AtMost(most)) }
    }

    /// A number that is at least this.
    pub fn at_least(least: i64) -> Self {
        Self { set: Some(least.to_string()), ..Self::new(Accept::AtLeast(least)) }
    }

    /// A mask in hexadecimal that holds none but these CPUs.
    pub fn mask_within(cpus: &CpuList) -> Self {
        Self { set: Some(mask(cpus)), ..Self::new(Accept::MaskWithin(cpus.clone())) }
    }

    /// Any value: the finding reports it.
    pub const fn any() -> Self {
        Self::new(Accept::Any)
    }

    /// What is not wanted is only doubtful.
    #[must_use]
    pub fn or_doubtful(self) -> Self {
        Self { otherwise: Status::Doubtful, ..self }
    }

    /// What to write instead of the value itself.
    #[must_use]
    pub fn set(self, value: impl Into<String>) -> Self {
        Self { set: Some(value.into()), ..self }
    }

    #[must_use]
    pub fn not_set(self) -> Self {
        Self { set: None, ..self }
    }

    /// What is wanted, in words.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..self }
    }

    fn wanted(&self) -> String {
        if let Some(text) = &self.text {
            return text.clone();
        }
        match &self.accept {
            Accept::Any => "known".into(),
            Accept::OneOf(values) => values.join(" or "),
            Accept::AtMost(most) => format!("at most {most}"),
            Accept::AtLeast(least) => format!("at least {least}"),
            Accept::MaskWithin(cpus) => format!("none but {}", machine::cpus(cpus)),
        }
    }

    /// Whether a value is as wanted; `Err`: what it should have been.
    fn holds(&self, value: &str) -> Result<bool, &'static str> {
        let number = || {
            let word = value.split_whitespace().next().unwrap_or("");
            word.parse::<i64>().map_err(|_| "a number")
        };
        match &self.accept {
            Accept::Any => Ok(true),
            Accept::OneOf(values) => Ok(values.iter().any(|wanted| wanted == value)),
            Accept::AtMost(most) => Ok(number()? <= *most),
            Accept::AtLeast(least) => Ok(number()? >= *least),
            Accept::MaskWithin(cpus) => {
                let mask = CpuList::parse_mask(value).map_err(|_| "a mask of CPUs")?;
                Ok(mask.difference(cpus).is_empty())
            }
        }
    }
}

/// CPUs as the kernel's mask, 32 bits a word, the highest first.
pub fn mask(cpus: &CpuList) -> String {
    let words = cpus.iter().max().map_or(1, |highest| highest / 32 + 1);
    let word = |index: u32| {
        let bits = cpus.iter().filter(|cpu| cpu / 32 == index).map(|cpu| 1u32 << (cpu % 32));
        bits.fold(0, |all, bit| all | bit)
    };
    let words: Vec<String> =
        (0..words)
            .rev()
            .enumerate()
            .map(|(at, index)| {
                if at == 0 { format!("{:x}", word(index)) } else { format!("{:08x}", word(index)) }
            })
            .collect();
    words.join(",")
}

impl KnobValue {
    /// The finding for a knob.
    pub(crate) fn judge(
        &self,
        draft: FindingBuilder,
        knob: &'static Knob,
        facts: &Facts,
        intent: &Intent,
    ) -> Finding {
        let want = (self.want)(intent);
        let is_of_cpus = knob.scope == Scope::Cpu;
        let mut draft = draft.wanted(want.wanted());
        if is_of_cpus {
            draft = draft.cpus(&intent.rt_cpus);
            if intent.rt_cpus.is_empty() {
                return draft.no_rt_cpus(facts);
            }
        }
        if let Some(other) = other_machine(knob, facts) {
            return draft.evidence([other.0]).not_applicable(other.1);
        }
        match self.applies.map_or(Applies::Yes, |applies| applies(facts, intent)) {
            Applies::Yes => {}
            Applies::No(evidence, why) => return draft.evidence([evidence]).not_applicable(why),
            Applies::Unknown(evidence, why) => return draft.evidence([evidence]).unknown(why),
        }
        let pattern = knob.patterns().next().unwrap_or(knob.id);
        let Some(setting) = facts.settings.get(knob.id) else {
            return draft.unreadable(&Reading::<String>::denied(pattern, "not asked"));
        };
        let of_rt = |value: &&SettingValue| {
            let cpu = value.of.split('/').next().unwrap_or("").parse::<u32>();
            !is_of_cpus || value.of.is_empty() || cpu.is_ok_and(|cpu| intent.rt_cpus.contains(cpu))
        };
        let values: Vec<&SettingValue> = setting.values.iter().filter(of_rt).collect();
        if values.iter().all(|value| value.reading.is_absent()) {
            return self.absent(draft, facts, &values, setting.missing_from.as_ref(), pattern);
        }
        let missing = if is_of_cpus { missing(&values, intent) } else { CpuList::default() };
        judge_values(draft.evidence(grouped(&values)), facts, &want, &values, &missing, knob)
    }

    fn absent(
        &self,
        draft: FindingBuilder,
        facts: &Facts,
        values: &[&SettingValue],
        lacking: Option<&Reading<String>>,
        pattern: &str,
    ) -> Finding {
        let draft = draft.evidence(grouped(values));
        match self.absent {
            Absent::WithoutOption(option) if machine::built_with(facts, option) == Some(false) => {
                return draft.built_without(facts, option);
            }
            Absent::NoSuchThing(why) => {
                if let Some(reading) = lacking.filter(|reading| reading.value().is_some()) {
                    return draft.read(reading, String::clone).not_applicable(why);
                }
            }
            _ => {}
        }
        match values.first() {
            Some(value) => draft.unreadable(&value.reading),
            None => draft.unreadable(&Reading::<String>::absent(pattern)),
        }
    }
}

/// Why the machine cannot have the knob: another architecture, an older kernel.
fn other_machine(knob: &Knob, facts: &Facts) -> Option<(Evidence, String)> {
    let arch = &facts.kernel.arch;
    if let Some(name) = arch.value().filter(|name| !knob.arch.has(name)) {
        return Some((Evidence::of(arch, String::clone), format!("not on {name}")));
    }
    let (major, minor) = knob.since?;
    (machine::since(facts, (major, minor)) == Some(false)).then(|| {
        let release = Evidence::of(&facts.kernel.release, String::clone);
        (release, format!("kernels before {major}.{minor} do not have it"))
    })
}

/// Real-time CPUs that have no value.
fn missing(values: &[&SettingValue], intent: &Intent) -> CpuList {
    let cpu = |value: &&SettingValue| value.of.split('/').next().unwrap_or("").parse::<u32>().ok();
    intent.rt_cpus.difference(&CpuList::new(values.iter().filter_map(cpu)))
}

fn judge_values(
    draft: FindingBuilder,
    facts: &Facts,
    want: &Want,
    values: &[&SettingValue],
    missing: &CpuList,
    knob: &'static Knob,
) -> Finding {
    let mut wrong: Vec<&SettingValue> = Vec::new();
    let mut unreadable = None;
    for &value in values {
        match value.reading.value().map(|text| (text, want.holds(text))) {
            Some((_, Ok(true))) => {}
            Some((_, Ok(false))) => wrong.push(value),
            Some((text, Err(expected))) => {
                let path = value.reading.path.as_str();
                unreadable.get_or_insert_with(|| Reading::malformed(path, text, expected));
            }
            None => {
                unreadable.get_or_insert_with(|| value.reading.clone());
            }
        }
    }
    if !wrong.is_empty() {
        let paths = wrong.iter().map(|value| value.reading.path.clone()).collect();
        let set = want.set.as_ref();
        let remedies = set.map_or_else(Vec::new, |value| remedies(knob, paths, value));
        let wanted = want.wanted();
        let summary = format!("{}; wanted: {wanted}", summary(&wrong));
        return draft.remedies(remedies).status(want.otherwise, summary);
    }
    if let Some(reading) = unreadable {
        return draft.unreadable(&reading);
    }
    if !missing.is_empty() {
        return draft.missing_cpus(facts, missing);
    }
    draft.good(summary(values))
}

/// Writing the value, and the boot parameter that does the same.
fn remedies(knob: &'static Knob, paths: Vec<String>, value: &str) -> Vec<Remedy> {
    let parameter = knob.boot.map(|boot| boot.replace("{}", value));
    let boot = parameter.map(|parameter| Remedy::Boot { parameter });
    let is_file = matches!(knob.place, Place::File(_) | Place::Choice(_));
    let write = (is_file && When::of(knob.effect) == When::Now && !knob.is_counter)
        .then(|| Remedy::set(knob, paths, value));
    write.into_iter().chain(boot).collect()
}

/// Values in a line: `60`, or `eth0, eth1: on`.
fn summary(values: &[&SettingValue]) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for value in values {
        let text = value.reading.value().map_or("", String::as_str);
        match groups.iter_mut().find(|(known, _)| *known == text) {
            Some((_, of)) => of.push(&value.of),
            None => groups.push((text, vec![&value.of])),
        }
    }
    let shown = |text: &str| if text.is_empty() { "empty".to_owned() } else { text.to_owned() };
    let groups: Vec<String> = groups
        .iter()
        .map(|(text, of)| match of.as_slice() {
            [""] => shown(text),
            of => format!("{}: {}", names(of), shown(text)),
        })
        .collect();
    // A table of many files is no summary: the evidence has them all.
    match values.first() {
        Some(first) if groups.len() > 2 && values.len() > FILES_MAX => {
            let value = first.reading.value().map_or("", String::as_str);
            let more = machine::count(values.len() - 1, "other file");
            format!("{}: {}, and {more}", first.reading.path, shown(value))
        }
        _ => machine::first_few(&groups, NAMED_MAX),
    }
}

/// Names, numbers as the ranges of CPUs that they are.
fn names(of: &[&str]) -> String {
    let numbers: Option<Vec<u32>> = of.iter().map(|name| name.parse().ok()).collect();
    match numbers {
        Some(numbers) => machine::cpus(&CpuList::new(numbers)),
        None => machine::first_few(of, NAMED_MAX),
    }
}

/// Values as evidence; equal ones share a line.
pub(crate) fn grouped(values: &[&SettingValue]) -> Vec<Evidence> {
    let numbers: Option<Vec<u32>> = values.iter().map(|value| value.of.parse().ok()).collect();
    if let Some(numbers) = numbers.filter(|numbers| numbers.len() > 1) {
        let readings = values.iter().map(|value| &value.reading);
        return machine::grouped(numbers.into_iter().zip(readings), String::clone);
    }
    machine::by_path(values.iter().map(|value| &value.reading))
}

// Checks that say "the kernel is built with this option", or without it.
//
// A build says what a kernel can do, seldom what it does. So a check may name what makes another
// build harmless. An unreadable configuration is unknown.

/// What is wanted of options of the kernel's build.
pub struct Build {
    /// Options without `CONFIG_`.
    pub options: &'static [&'static str],
    /// What is wanted of them.
    pub want: fn(&Intent) -> Built,
    /// Status of another build.
    pub otherwise: Status,
    /// Option without which the check does not apply.
    pub part_of: Option<&'static str>,
    /// Condition under which another build is harmless on this machine, and its sentence.
    pub harmless: Option<fn(&Facts, &Intent) -> Harmless>,
    /// What helps without another kernel.
    pub remedy: Option<fn() -> Remedy>,
}

/// What shows that a build is harmless, and how to say so.
pub type Harmless = Option<(Evidence, &'static str)>;

/// What is wanted of options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Built {
    /// Every option is set in the build.
    With,
    /// No option is set in the build.
    Without,
    /// Either: the finding shows the build.
    Either,
}

impl Build {
    /// Without the options, else doubtful.
    pub const NEW: Self = Self {
        options: &[],
        want: |_| Built::Without,
        otherwise: Status::Doubtful,
        part_of: None,
        harmless: None,
        remedy: None,
    };

    /// Whether neither way is wanted.
    pub fn is_open(&self, intent: &Intent) -> bool {
        (self.want)(intent) == Built::Either
    }

    pub(crate) fn judge(&self, draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
        let want = (self.want)(intent);
        let names = |options: &[&str]| {
            let names: Vec<String> = options.iter().map(|name| format!("CONFIG_{name}")).collect();
            names.join(", ")
        };
        let wanted = match want {
            Built::With => format!("{} set", names(self.options)),
            Built::Without => format!("{} not set", names(self.options)),
            Built::Either => "known".into(),
        };
        let draft = draft.wanted(wanted);
        let evidence: Vec<Evidence> =
            self.options.iter().map(|option| machine::option(facts, option)).collect();
        let texts: Vec<String> = evidence.iter().map(|one| one.value.clone()).collect();
        let config = &facts.kernel.config;
        let Some(found) = config.value() else {
            return draft.unreadable(config);
        };
        let draft = draft.evidence(evidence);
        if want == Built::With
            && !self.options.iter().any(|option| found.contains_key(*option))
            && let Some((release, why)) = known::too_new(facts, self.options)
        {
            return draft.evidence([release]).not_applicable(why);
        }
        if let Some(option) = self.part_of
            && machine::built_with(facts, option) == Some(false)
        {
            return draft.built_without(facts, option);
        }
        let is_built = |option: &str| machine::built_with(facts, option);
        let are = |built| self.options.iter().filter(move |option| is_built(option) == built);
        let wrong: Vec<&str> = match want {
            Built::With => are(Some(false)).copied().collect(),
            Built::Without => are(Some(true)).copied().collect(),
            Built::Either => Vec::new(),
        };
        if let (true, Some(option)) = (wrong.is_empty(), are(None).next()) {
            let path = &config.path;
            return draft.unknown(format!("{path}: a part, which does not name CONFIG_{option}"));
        }
        if wrong.is_empty() {
            return draft.good(match (want, texts.len()) {
                (_, ..=2) => texts.join(", "),
                (Built::Without, n) => format!("none of {n} options set"),
                (_, n) => format!("all of {n} options set"),
            });
        }
        let is = if want == Built::With { "not set" } else { "set" };
        let summary = format!("{}: {is}", names(&wrong));
        if let Some((evidence, why)) = self.harmless.and_then(|ask| ask(facts, intent)) {
            return draft.evidence([evidence]).good(format!("{summary}; {why}"));
        }
        let value = if want == Built::With { "y" } else { "n" };
        let options = wrong.iter().map(|name| format!("{name}={value}")).collect();
        let remedies = self.remedy.map(|remedy| remedy()).into_iter();
        draft.remedies(remedies.chain([Remedy::Build { options }])).status(self.otherwise, summary)
    }
}

// Values of knobs, as checks that need more than one of them read them.

/// Every value of a knob: one for each CPU or device, in the order of their names.
pub(crate) fn knob_values<'a>(facts: &'a Facts, knob: &Knob) -> &'a [SettingValue] {
    facts.settings.get(knob.id).map_or(&[], |setting| &setting.values)
}

/// Its first value. What a record of an earlier rtproof does not hold is refused, not absent.
pub(crate) fn knob_text(facts: &Facts, knob: &Knob) -> Reading<String> {
    let path = knob.patterns().next().unwrap_or(knob.id);
    match facts.settings.get(knob.id).map(|setting| setting.values.first()) {
        Some(Some(value)) => value.reading.clone(),
        Some(None) => Reading::absent(path),
        None => Reading::denied(path, "not asked"),
    }
}

/// Its first value, a number.
pub(crate) fn knob_number(facts: &Facts, knob: &Knob) -> Reading<i64> {
    knob_text(facts, knob).and_then(|path, text| match text.parse() {
        Ok(number) => Reading::known(path, number),
        Err(_) => Reading::malformed(path, &text, "a number"),
    })
}

/// What is known to lack the file, where it is not there.
pub(crate) fn missing_from<'a>(facts: &'a Facts, knob: &Knob) -> Option<&'a Reading<String>> {
    let lacking = facts.settings.get(knob.id)?.missing_from.as_ref()?;
    lacking.value().is_some().then_some(lacking)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cpus, examples, good, good_stock, intent, set_setting};
    use crate::{Check, Judge, all, by_id};
    use rtproof_host::Reading;

    /// What a fragment or an extract leaves out is neither set nor not set.
    #[test]
    fn a_part_of_a_configuration_answers_for_what_it_names() {
        let mut facts = good();
        facts.kernel.config_is_part = true;
        let part = [("PROVE_LOCKING", "y"), ("CPU_IDLE", "y"), ("RT_GROUP_SCHED", "n")];
        let part = part.map(|(name, value)| (name.to_owned(), value.to_owned()));
        facts.kernel.config = Reading::known("/boot/config", part.into());
        for (id, status) in [
            ("config-debug-kmemleak", Status::Unknown),
            ("config-debug-locking", Status::Bad),
            ("config-cpusets", Status::Unknown),
            ("config-rt-group-sched", Status::Good),
        ] {
            let finding = by_id(id).unwrap().judge(&facts, &intent());
            assert_eq!(finding.status, status, "{finding:?}");
        }
    }

    fn rules()
    -> impl Iterator<Item = (&'static Check, &'static KnobValue, &'static str, &'static str)> {
        examples().map(|(knob, good, bad)| {
            let check = by_id(knob.id).unwrap();
            let Judge::Value(value) = &check.judge else { panic!("{} is no value", knob.id) };
            assert_eq!(check.knobs, [*knob]);
            (check, value, *good, *bad)
        })
    }

    #[test]
    fn every_check_of_a_value_has_examples() {
        let is_value = |check: &&Check| matches!(check.judge, Judge::Value(_));
        assert_eq!(all().filter(is_value).count(), examples().count());
    }

    /// A machine that the rule concerns: the good one, else the stock one.
    fn machine(knob: &Knob, value: &KnobValue) -> Facts {
        let found = [good(), good_stock()].into_iter().find(|facts| {
            let applies = value.applies.map_or(Applies::Yes, |applies| applies(facts, &intent()));
            applies == Applies::Yes && other_machine(knob, facts).is_none()
        });
        found.unwrap_or_else(|| {
            let mut facts = good();
            let name =
                if knob.arch == rtproof_host::knob::KnobArch::Arm64 { "aarch64" } else { "x86_64" };
            facts.kernel.arch = Reading::known("/proc/sys/kernel/arch", name.to_owned());
            facts
        })
    }

    #[test]
    fn every_rule_has_a_good_a_bad_and_unknown_cases() {
        for (check, value, good_value, bad_value) in rules() {
            let id = check.id;
            let with = |reading: Reading<String>| {
                let mut facts = machine(check.knobs[0], value);
                set_setting(&mut facts, check.knobs[0], reading);
                check.judge(&facts, &intent())
            };
            let path = "/the/path";
            let finding = with(Reading::known(path, good_value.to_owned()));
            assert_eq!(finding.status, Status::Good, "{id}: {finding:#?}");
            assert!(finding.remedies.is_empty());
            let finding = with(Reading::known(path, bad_value.to_owned()));
            let is_bad = matches!(finding.status, Status::Bad | Status::Doubtful);
            assert!(is_bad, "{id}: {finding:#?}");
            assert!(finding.summary.contains("wanted: "), "{id}: {}", finding.summary);
            let finding = with(Reading::denied(path, "EACCES"));
            assert_eq!(finding.status, Status::Unknown, "{id}: {finding:#?}");
            let finding = with(Reading::malformed(path, "?", "something"));
            assert_eq!(finding.status, Status::Unknown, "{id}: {finding:#?}");
            let finding = with(Reading::absent(path));
            let is_known_lack = matches!(value.absent, Absent::WithoutOption(_));
            let is_right = finding.status == Status::Unknown
                || (is_known_lack && finding.status == Status::NotApplicable);
            assert!(is_right, "{id}: {finding:#?}");
        }
    }

    #[test]
    fn a_folder_that_lacks_the_file_is_a_reason() {
        for (check, value, ..) in rules() {
            let mut facts = machine(check.knobs[0], value);
            let setting = facts.settings.get_mut(check.id).unwrap();
            setting.values.clear();
            setting.missing_from = Some(Reading::known("/sys", "holds no x".to_owned()));
            let finding = check.judge(&facts, &intent());
            match value.absent {
                Absent::NoSuchThing(why) => {
                    assert_eq!(finding.status, Status::NotApplicable, "{finding:#?}");
                    assert_eq!(finding.summary, why);
                }
                _ => assert_ne!(finding.status, Status::Good, "{finding:#?}"),
            }
        }
    }

    #[test]
    fn masks_are_written_as_the_kernel_writes_them() {
        assert_eq!(mask(&cpus(&[0, 1])), "3");
        assert_eq!(mask(&cpus(&[])), "0");
        assert_eq!(mask(&cpus(&[1, 32, 63])), "80000001,00000002");
        for list in [cpus(&[0, 5]), cpus(&[31, 32, 70])] {
            assert_eq!(CpuList::parse_mask(&mask(&list)), Ok(list));
        }
    }

    #[test]
    fn values_of_one_kind_share_a_line() {
        let value = |of: &str, text: &str| SettingValue {
            of: of.into(),
            reading: Reading::known(format!("/x{of}"), text.to_owned()),
        };
        let values = [value("2", "a"), value("3", "a"), value("4", "b")];
        let values: Vec<&SettingValue> = values.iter().collect();
        assert_eq!(summary(&values), "CPUs 2-3: a, CPU 4: b");
        let values = [value("eth0", "on"), value("eth1", "on")];
        assert_eq!(summary(&values.iter().collect::<Vec<_>>()), "eth0, eth1: on");
    }

    #[test]
    fn many_files_with_many_values_make_a_short_summary() {
        let value = |n: u32| SettingValue {
            of: format!("kmalloc-{n}"),
            reading: Reading::known(format!("/sys/kernel/slab/kmalloc-{n}/x"), (n % 3).to_string()),
        };
        let values: Vec<SettingValue> = (1..=12).map(value).collect();
        let all: Vec<&SettingValue> = values.iter().collect();
        assert_eq!(summary(&all), "/sys/kernel/slab/kmalloc-1/x: 1, and 11 other files");
        assert_eq!(summary(&all[..2]), "kmalloc-1: 1, kmalloc-2: 2");
    }
}

#[cfg(test)]
mod build_tests {
    use super::*;
    use crate::Profile;
    use crate::profile::WorkloadKind;
    use crate::testing::{good, good_stock, intent, set_config};
    use crate::{Check, Judge, all};
    use rtproof_host::Reading;

    fn rows() -> impl Iterator<Item = (&'static Check, &'static Build)> {
        all().filter_map(|check| match &check.judge {
            Judge::Build(build) => Some((check, build)),
            _ => None,
        })
    }

    /// A machine on which nothing makes another build harmless.
    fn machine(row: &Build) -> Facts {
        let mut facts = good_stock();
        facts.kernel.cmdline = Reading::absent("/proc/cmdline");
        facts.settings.clear();
        for cpu in &mut facts.cpus.cpus {
            cpu.freq.governor = Reading::known("/sys/x", "schedutil".to_owned());
        }
        if let Some(option) = row.part_of {
            set_config(&mut facts, option, Some("y"));
        }
        set_config(&mut facts, "PREEMPT_RCU", Some("y"));
        facts
    }

    #[test]
    fn every_row_has_a_good_another_and_unknown_cases() {
        for (check, row) in rows() {
            let mut intents = vec![intent()];
            intents.extend(
                WorkloadKind::ALL.map(|kind| Intent { profile: Profile::of(kind), ..intent() }),
            );
            for intent in intents {
                let with = |value| {
                    let mut facts = machine(row);
                    row.options.iter().for_each(|option| set_config(&mut facts, option, value));
                    check.judge(&facts, &intent)
                };
                let (set, unset) = (with(Some("y")), with(None));
                let (right, wrong) = match (row.want)(&intent) {
                    Built::With => (set, unset),
                    Built::Without => (unset, set),
                    Built::Either => {
                        assert_eq!((set.status, unset.status), (Status::Good, Status::Good));
                        continue;
                    }
                };
                assert_eq!(right.status, Status::Good, "{right:#?}");
                assert_eq!(wrong.status, row.otherwise, "{wrong:#?}");
                assert!(!wrong.remedies.is_empty());
            }
            let mut facts = good();
            facts.kernel.config = Reading::denied("/proc/config.gz", "EACCES");
            let finding = check.judge(&facts, &intent());
            assert_eq!(finding.status, Status::Unknown, "{finding:#?}");
        }
    }

    #[test]
    fn a_row_below_an_unbuilt_option_does_not_apply() {
        for (check, row) in rows() {
            let Some(option) = row.part_of else { continue };
            let mut facts = good();
            set_config(&mut facts, option, None);
            assert_eq!(
                check.judge(&facts, &intent()).status,
                Status::NotApplicable,
                "{}",
                check.id
            );
        }
    }
}
