//! Intent of the machine: the profile, by name or from a file, and checks that are left
//! out, each with its reason.

use std::{collections::BTreeMap, path::Path};

use serde::Deserialize;

use rtproof_host::{
    CpuList, Facts, Root,
    change::RIGHTS_GROUPS,
    door::{Invalid, usage},
    facts::rights::{self, Account, UserSource},
    tune::Change,
};
use rtproof_judge::{
    Intent, Profile, application, checks,
    profile::{Choices, WorkloadKind},
};

use crate::{online_cpus, parse};

/// Default priority of the application.
pub const PRIORITY: u32 = 80;

/// Default period of its loop.
pub const PERIOD_NS: u64 = 1_000_000;

/// Largest file of a profile.
const BYTES_MAX: u64 = 1 << 20;

/// Profile and checks left out. What a file leaves open is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntentOptions {
    pub profile: Profile,
    /// Real-time CPUs, as a list.
    pub cpus: Option<String>,
    /// Priority of the application.
    pub priority: Option<u32>,
    /// Period of its loop.
    pub period_ns: Option<u64>,
    pub budget_ns: Option<u64>,
    pub skip: BTreeMap<String, String>,
}

impl IntentOptions {
    /// Intent of the machine: as stated on the command line, else the profile, else
    /// what the machine has.
    ///
    /// # Errors
    /// Usage: CPUs that are not there.
    pub fn intent(self, stated: Self, facts: &Facts) -> anyhow::Result<Intent> {
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        let (rt_cpus, proposed) = match self.stated_cpus(stated.cpus.as_deref(), facts)? {
            Some(cpus) => (cpus, None),
            None => Intent::default_rt_cpus(facts),
        };
        Ok(Intent {
            housekeeping: online.difference(&rt_cpus),
            rt_cpus,
            proposed,
            priority: stated.priority.or(self.priority).unwrap_or(PRIORITY),
            period_ns: stated.period_ns.or(self.period_ns).unwrap_or(PERIOD_NS),
            budget_ns: stated.budget_ns.or(self.budget_ns),
            profile: self.profile,
            skip: self.skip,
            user: None,
        })
    }

    /// The CPUs of the command line, else of the profile; `None`: neither says.
    ///
    /// # Errors
    /// Usage: CPUs that are not there.
    pub fn stated_cpus(
        &self,
        stated: Option<&str>,
        facts: &Facts,
    ) -> anyhow::Result<Option<CpuList>> {
        let profile = self.cpus.as_deref().map(|list| (list, "cpus of the profile"));
        let list = stated.map(|list| (list, "--cpus")).or(profile);
        list.map(|(list, option)| online_cpus(list, option, facts)).transpose()
    }
}

/// The user whose rights count: the stated one, else the caller of sudo or doas, else
/// the one of this process. No user is guessed: `None` for root alone, and for a machine elsewhere.
///
/// # Errors
/// Usage: no name of a user, or root.
pub fn user(root: &Root, stated: Option<&str>) -> anyhow::Result<Option<Account>> {
    if let Some(name) = stated {
        let member = Change::Member { group: RIGHTS_GROUPS[0].into(), user: name.into() };
        member.may_be_made().map_err(|why| usage(format!("--user: {why}")))?;
        if name == "root" {
            return Err(usage("--user root: root has every right; name the application's user"));
        }
        return Ok(Some(Account::read(root, name, UserSource::Stated)));
    }
    if !root.is_live() {
        return Ok(None);
    }
    let uid = rustix::process::geteuid();
    if !uid.is_root() {
        let name = rights::name_of(root, uid.as_raw());
        return Ok(name.map(|name| Account::read(root, &name, UserSource::Runs)));
    }
    let asked = ["SUDO_USER", "DOAS_USER"].iter().find_map(|name| std::env::var(name).ok());
    let asked = asked.filter(|name| name != "root" && !name.is_empty());
    Ok(asked.map(|name| Account::read(root, &name, UserSource::Asked)))
}

/// A profile and checks left out, as requested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestedIntent {
    /// Profile: its name, or a file.
    pub profile: Option<String>,
    /// Checks left out: `ID=REASON`.
    pub skip: Vec<String>,
}

/// A profile as it is written.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    name: Option<String>,
    #[serde(default)]
    kind: WorkloadKind,
    cpus: Option<String>,
    priority: Option<u32>,
    period: Option<String>,
    budget: Option<String>,
    #[serde(default)]
    choices: toml::Table,
    #[serde(default)]
    skip: BTreeMap<String, String>,
}

impl RequestedIntent {
    /// Reads the profile and the checks left out.
    ///
    /// # Errors
    /// Usage: no such profile, a file that is not one, a check that does not exist.
    pub fn resolve(&self) -> anyhow::Result<IntentOptions> {
        let mut options = match &self.profile {
            None => IntentOptions::default(),
            Some(name) => profile(name).map_err(usage)?,
        };
        for skip in &self.skip {
            let (id, reason) = skip.split_once('=').unwrap_or((skip, ""));
            if reason.trim().is_empty() {
                let text = format!("--skip {id}: say why: --skip {id}=\"the reason\"");
                return Err(usage(text));
            }
            options.skip.insert(id.trim().into(), reason.trim().into());
        }
        for id in options.skip.keys() {
            known(id).map_err(|why| usage(format!("--skip {id}: {why}")))?;
        }
        Ok(options)
    }
}

/// Whether a check exists; else what it may have been.
///
/// # Errors
/// There is none; names like it.
pub fn known(id: &str) -> Result<(), Invalid> {
    if checks::by_id(id).is_some() || application::by_id(id).is_some() {
        return Ok(());
    }
    let of_application = application::all().map(|check| check.id);
    let ids = checks::all().map(|check| check.id).chain(of_application);
    let like: Vec<&str> = ids.filter(|known| is_like(known, id)).collect();
    Err(match like.as_slice() {
        [] => "no such check; `rtproof check explain` lists them".into(),
        like => format!("no such check; there is {}", like[..like.len().min(5)].join(", ")).into(),
    })
}

/// Whether names share a word of some length, or are a slip of the keys apart.
fn is_like(known: &str, asked: &str) -> bool {
    let long = |word: &&str| word.len() > 2;
    let asked = asked.to_lowercase();
    asked.split(['-', '_', '.']).filter(long).any(|word| known.contains(word))
        || slips(known, &asked) <= 1 + asked.len() / 6
}

/// Letters to be changed, added or left out to get from one name to the other.
fn slips(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut above = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in other.bytes().enumerate() {
            let changed = above + usize::from(a != b);
            above = row[j + 1];
            row[j + 1] = changed.min(above + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

/// A profile by name or from a file.
fn profile(name: &str) -> Result<IntentOptions, Invalid> {
    if let Some(profile) = Profile::named(name) {
        return Ok(IntentOptions { profile, ..IntentOptions::default() });
    }
    let names: Vec<&str> = WorkloadKind::ALL.iter().map(|kind| kind.name()).collect();
    let names = names.join(", ");
    let path = Path::new(name);
    let is_path = name.contains(['/', '.']);
    let text = read(path).map_err(|error| match is_path {
        true => format!("--profile {name}: {error}"),
        false => format!("--profile {name}: no such profile or file; there are {names}"),
    })?;
    from_text(&text, path).map_err(|why| format!("--profile {name}: {why}").into())
}

fn read(path: &Path) -> std::io::Result<String> {
    let file = rtproof_host::door::read(path)?;
    let mut text = String::new();
    std::io::Read::read_to_string(&mut std::io::Read::take(file, BYTES_MAX), &mut text)?;
    Ok(text)
}

fn from_text(text: &str, path: &Path) -> Result<IntentOptions, Invalid> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string().trim().to_owned())?;
    let base = Profile::of(file.kind);
    let name = file.name.or_else(|| Some(path.file_stem()?.to_string_lossy().into_owned()));
    let choices = choices(&base.choices, file.choices)?;
    if let Some(priority) = file.priority {
        parse::priority(&priority.to_string()).map_err(|why| format!("priority: {why}"))?;
    }
    let time = |name: &str, text: Option<String>, parse: fn(&str) -> Result<u64, Invalid>| {
        text.map(|text| parse(&text).map_err(|why| format!("{name} = \"{text}\": {why}")))
            .transpose()
    };
    Ok(IntentOptions {
        profile: Profile { name: name.unwrap_or(base.name), kind: file.kind, choices },
        cpus: file.cpus,
        priority: file.priority,
        period_ns: time("period", file.period, parse::period)?,
        budget_ns: time("budget", file.budget, parse::budget)?,
        skip: file.skip,
    })
}

/// The choices of the kind of work, with those that the file makes.
fn choices(base: &Choices, given: toml::Table) -> Result<Choices, Invalid> {
    let mut all = toml::Table::try_from(base).map_err(|error| error.to_string())?;
    for (key, value) in given {
        if !all.contains_key(&key) {
            let keys: Vec<&str> = all.keys().map(String::as_str).collect();
            return Err(format!("choices: no {key}; there are {}", keys.join(", ")).into());
        }
        all.insert(key, value);
    }
    all.try_into().map_err(|error: toml::de::Error| format!("choices: {}", error.message()).into())
}

#[cfg(test)]
mod tests {
    use rtproof_judge::profile::Choice;

    use super::*;

    fn options(text: &str) -> Result<IntentOptions, Invalid> {
        from_text(text, Path::new("/etc/press.toml"))
    }

    #[test]
    fn a_profile_states_its_changes() {
        let found = options(
            "kind = \"busy-poll\"\ncpus = \"2-3\"\npriority = 90\nperiod = \"250us\"\n\
             budget = \"50us\"\n[choices]\nturbo = \"on\"\n[skip]\nsmt = \"no firmware menu\"\n",
        )
        .unwrap();
        assert_eq!(found.profile.name, "press");
        assert_eq!(found.profile.kind, WorkloadKind::BusyPoll);
        assert_eq!(found.profile.choices.turbo, Choice::On);
        assert_eq!(found.profile.choices.nohz_full, Choice::On);
        assert_eq!(found.cpus.as_deref(), Some("2-3"));
        assert_eq!(
            (found.priority, found.period_ns, found.budget_ns),
            (Some(90), Some(250_000), Some(50_000))
        );
        assert_eq!(found.skip["smt"], "no firmware menu");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, word) in [
            ("kind = \"fast\"", "fast"),
            ("speed = 1", "speed"),
            ("priority = 100", "priority"),
            ("period = \"1\"", "period"),
            ("[choices]\nturbo = \"maybe\"", "maybe"),
            ("[choices]\nturbos = \"on\"", "turbos"),
            ("= =", "TOML"),
        ] {
            let error = options(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn no_user_is_guessed() {
        let elsewhere = Root::dir(Path::new("/proc/self/fdinfo"));
        let elsewhere = elsewhere.unwrap();
        assert_eq!(user(&elsewhere, None).unwrap(), None);
        assert_eq!(user(&elsewhere, Some("alice")).unwrap().unwrap().source, UserSource::Stated);
        for wrong in ["root", "", "-x", "a b", "a:b"] {
            assert!(user(&elsewhere, Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn skipping_takes_a_reason_and_a_check_that_exists() {
        let of = |skip: &str| RequestedIntent { profile: None, skip: vec![skip.into()] }.resolve();
        assert_eq!(of("smt=needed").unwrap().skip["smt"], "needed");
        assert!(of("smt").unwrap_err().to_string().contains("say why"));
        let error = of("cpufreq=x").unwrap_err().to_string();
        assert!(error.contains("cpufreq-governor"), "{error}");
        for (slip, suggested) in
            [("thpp", "thp"), ("rt-throtling", "rt-throttling"), ("TPH", "thp")]
        {
            let error = known(slip).unwrap_err();
            assert_eq!(error.contains(suggested), slip != "TPH", "{slip}: {error}");
        }
    }
}
