//! Values of the knobs that are plain files, read by one rule for all of them.
//!
//! What is missing is distinguished: a setting without values says which folder lacks it
//! ([`Setting::missing_from`]), so that "this kernel has no such file" is known and not guessed. Of
//! a folder that holds a part of a machine nothing is known to be lacking.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::knob::{Knob, Place};
use crate::text::between;
use crate::{Reading, Root, knobs};

/// Longest value that is kept: masks of 8192 CPUs have 2304 characters.
const VALUE_CHARS_MAX: usize = 4096;

/// Ends a value that was cut, so that the start of a list is not taken for a list.
const CUT: &str = "...";

/// Settings by the id of their knob.
pub type Settings = BTreeMap<String, Setting>;

/// What a knob without wildcards was read as: for a fact that is a setting, too.
pub fn value_of(settings: &Settings, knob: &Knob) -> Reading<String> {
    let values = settings.get(knob.id).map(|setting| setting.values.as_slice());
    let none = || Reading::absent(knob.patterns().next().unwrap_or(knob.id));
    values.and_then(<[SettingValue]>::first).map_or_else(none, |value| value.reading.clone())
}

/// What the file at a path was read as, if it is a setting.
pub fn value_at<'a>(settings: &'a Settings, path: &str) -> Option<&'a Reading<String>> {
    let readings =
        settings.values().flat_map(|setting| &setting.values).map(|value| &value.reading);
    readings.into_iter().find(|reading| reading.path == path)
}

/// The values of one knob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// One for each file, in the order of their names (numbers by their value). A knob without
    /// wildcards has exactly one, be it absent; one with wildcards has none where no file matches.
    pub values: Vec<SettingValue>,
    /// Where no file is there: the nearest folder above that can be listed, and what it lacks.
    #[serde(rename = "lacking")]
    pub missing_from: Option<Reading<String>>,
}

/// The value of a knob for one CPU or device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettingValue {
    /// What the wildcards stood for, joined by `/`: the CPU's number, a device, `eth0/rx-0`. Empty
    /// without wildcards.
    pub of: String,
    /// The file and its trimmed text, or the choice in brackets.
    pub reading: Reading<String>,
}

/// Reads every knob that is a file.
pub fn read(root: &Root) -> Settings {
    let is_file =
        |knob: &&Knob| !knob.is_fact && matches!(knob.place, Place::File(_) | Place::Choice(_));
    let folders = Folders::of(root);
    let read = |knob: &Knob| (knob.id.to_owned(), folders.setting(knob));
    knobs::all().filter(is_file).map(read).collect()
}

/// A machine whose folders are listed once each: many knobs lie in the same ones.
struct Folders<'a> {
    root: &'a Root,
    listed: RefCell<BTreeMap<String, Rc<Reading<Vec<String>>>>>,
}

impl<'a> Folders<'a> {
    const fn of(root: &'a Root) -> Self {
        Self { root, listed: RefCell::new(BTreeMap::new()) }
    }

    fn list(&self, folder: &str) -> Rc<Reading<Vec<String>>> {
        if let Some(listed) = self.listed.borrow().get(folder) {
            return Rc::clone(listed);
        }
        let listed = Rc::new(self.root.list_dir(folder));
        self.listed.borrow_mut().insert(folder.to_owned(), Rc::clone(&listed));
        listed
    }

    fn setting(&self, knob: &Knob) -> Setting {
        let is_choice = matches!(knob.place, Place::Choice(_));
        let mut first = None;
        for pattern in knob.patterns() {
            let found = of_pattern(self, pattern, is_choice);
            if found.values.iter().any(|value| !value.reading.is_absent()) {
                return found;
            }
            first.get_or_insert(found);
        }
        first.unwrap_or(Setting { values: Vec::new(), missing_from: None })
    }
}

pub fn setting(root: &Root, knob: &Knob) -> Setting {
    Folders::of(root).setting(knob)
}

fn of_pattern(folders: &Folders<'_>, pattern: &str, is_choice: bool) -> Setting {
    let mut found = vec![(String::new(), String::new())];
    let mut refused = None;
    let mut missing = None;
    for part in pattern.split('/').skip(1) {
        let Some((before, after, is_number)) = wildcard(part) else {
            for (path, _) in &mut found {
                path.push('/');
                path.push_str(part);
            }
            continue;
        };
        let mut next = Vec::new();
        for (folder, of) in &found {
            let listed = folders.list(folder);
            let Some(names) = listed.value() else {
                match listed.is_absent() {
                    true => missing = Some(folder.clone()),
                    false => refused = Some(Reading::clone(&listed).map(|_| String::new())),
                }
                continue;
            };
            let mut matches: Vec<(u64, &str, String)> = names
                .iter()
                .filter_map(|name| {
                    let what = name.strip_prefix(before)?.strip_suffix(after)?;
                    let number = what.parse::<u64>();
                    let is_match = if is_number { number.is_ok() } else { !what.is_empty() };
                    let order = number.unwrap_or(u64::MAX);
                    is_match.then(|| (order, what, format!("{folder}/{name}")))
                })
                .collect();
            matches.sort_unstable();
            let join = |what: &str| match of.is_empty() {
                true => what.to_owned(),
                false => format!("{of}/{what}"),
            };
            next.extend(matches.into_iter().map(|(_, what, path)| (path, join(what))));
            if next.is_empty() {
                missing.get_or_insert_with(|| format!("{folder}/{part}"));
            }
        }
        found = next;
    }
    let read = |(path, of): (String, String)| SettingValue {
        of,
        reading: value(folders.root, &path, is_choice),
    };
    let mut values: Vec<SettingValue> = found.into_iter().map(read).collect();
    if wildcard(pattern).is_some() {
        // A device that has no such file is not a value; one that refuses is.
        if let Some(absent) = values.iter().find(|value| value.reading.is_absent()) {
            missing.get_or_insert_with(|| absent.reading.path.clone());
        }
        values.retain(|value| !value.reading.is_absent());
        values.extend(refused.map(|reading| SettingValue { of: String::new(), reading }));
    } else if let Some(absent) = values.first().filter(|value| value.reading.is_absent()) {
        missing = Some(absent.reading.path.clone());
    }
    let is_there = values.iter().any(|value| !value.reading.is_absent());
    let lacking =
        missing.filter(|_| !is_there).and_then(|path| missing_from_folders(folders, &path));
    Setting { values, missing_from: lacking }
}

/// Text before and after the wildcard of one name, and whether it matches a number.
fn wildcard(part: &str) -> Option<(&str, &str, bool)> {
    let number = part.split_once("{cpu}").map(|(before, after)| (before, after, true));
    number.or_else(|| part.split_once('*').map(|(before, after)| (before, after, false)))
}

fn value(root: &Root, path: &str, is_choice: bool) -> Reading<String> {
    let text = root.trimmed(path);
    let text = text.map(|text| match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}{CUT}", &text[..end]),
        None => text,
    });
    if !is_choice {
        return text;
    }
    text.parsed("one choice in [] or ()", |text| {
        between(text, '[', ']').or_else(|| between(text, '(', ')')).map(str::to_owned)
    })
}

/// The nearest folder above an absent path that can be listed and really lacks the next name.
/// `None` if that is unknown: a folder that holds a part of a machine, or no /proc, no /sys.
pub(crate) fn missing_from(root: &Root, path: &str) -> Option<Reading<String>> {
    missing_from_folders(&Folders::of(root), path)
}

fn missing_from_folders(folders: &Folders<'_>, path: &str) -> Option<Reading<String>> {
    if !folders.root.is_whole() {
        return None;
    }
    let mut below = path;
    while let Some((folder, name)) = below.rsplit_once('/') {
        // The folder itself must be a mounted /proc or /sys, or in one.
        if folder.is_empty() {
            return None;
        }
        let listed = folders.list(folder);
        if let Some(names) = listed.value() {
            let pattern = wildcard(name);
            let is_there = names.iter().any(|found| match pattern {
                None => found == name,
                Some((before, after, _)) => {
                    found.len() > before.len() + after.len()
                        && found.starts_with(before)
                        && found.ends_with(after)
                }
            });
            let is_empty_mount = names.is_empty() && matches!(folder, "/sys" | "/proc");
            return (!is_there && !is_empty_mount)
                .then(|| Reading::known(folder, format!("holds no {name}")));
        }
        if !listed.is_absent() {
            return None;
        }
        below = folder;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knob::Scope;
    use crate::testing::Tree;

    const GOVERNOR: Knob =
        Knob::file("g", "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor").of(Scope::Cpu);
    const QUEUES: Knob = Knob::file("q", "/sys/class/net/*/queues/rx-*/rps_cpus").of(Scope::Device);

    fn values(setting: &Setting) -> Vec<(&str, &str)> {
        fn pair(value: &SettingValue) -> (&str, &str) {
            (&value.of, value.reading.value().map_or("?", String::as_str))
        }
        setting.values.iter().map(pair).collect()
    }

    #[test]
    fn one_value_for_each_match_in_the_order_of_numbers() {
        let tree = Tree::new(&[
            ("sys/devices/system/cpu/cpu10/cpufreq/scaling_governor", "performance\n"),
            ("sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "powersave\n"),
            ("sys/devices/system/cpu/cpu3/online", "1\n"),
            ("sys/devices/system/cpu/cpufreq/policy0/x", "1\n"),
            ("sys/class/net/eth0/queues/rx-0/rps_cpus", "00000000,00000003\n"),
            ("sys/class/net/eth0/queues/rx-1/rps_cpus", "0\n"),
        ]);
        let found = setting(&tree.root(), &GOVERNOR);
        assert_eq!(values(&found), [("2", "powersave"), ("10", "performance")]);
        let found = setting(&tree.root(), &QUEUES);
        assert_eq!(values(&found), [("eth0/0", "00000000,00000003"), ("eth0/1", "0")]);
    }

    #[test]
    fn a_choice_alternatives_and_what_is_not_there() {
        let tree = Tree::new(&[("sys/b/mode", "none (full) lazy\n")]);
        const KNOB: Knob = Knob::choice("k", "/sys/a/mode | /sys/b/mode");
        let found = setting(&tree.root(), &KNOB);
        assert_eq!(values(&found), [("", "full")]);
        const OTHER: Knob = Knob::file("o", "/sys/c/x");
        let found = setting(&tree.root(), &OTHER);
        assert!(found.values[0].reading.is_absent());
        // A folder is a part of a machine: it proves nothing.
        assert_eq!(found.missing_from, None);
        assert_eq!(
            setting(&tree.root(), &GOVERNOR),
            Setting { values: vec![], missing_from: None }
        );
    }

    #[test]
    fn a_value_that_was_cut_is_no_list() {
        let mask = vec!["ffffffff"; 256].join(",");
        let list = (0..4096).map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",");
        let tree = Tree::new(&[("sys/mask", &mask), ("sys/list", &list)]);
        const MASK: Knob = Knob::file("m", "/sys/mask");
        const LIST: Knob = Knob::file("l", "/sys/list");
        assert_eq!(values(&setting(&tree.root(), &MASK)), [("", mask.as_str())]);
        let cut = setting(&tree.root(), &LIST);
        let cut = cut.values[0].reading.value().unwrap();
        assert!(cut.ends_with(CUT) && cut.len() == VALUE_CHARS_MAX + CUT.len());
        assert!(crate::CpuList::parse(cut, None).is_err());
    }

    #[test]
    fn a_folder_is_listed_once() {
        let tree = Tree::new(&[("sys/class/net/eth0/x", "1")]);
        let root = tree.root();
        let folders = Folders::of(&root);
        assert_eq!(folders.list("/sys/class/net").value().unwrap(), &["eth0"]);
        tree.write("sys/class/net/eth1/x", "1");
        assert_eq!(folders.list("/sys/class/net").value().unwrap(), &["eth0"]);
    }

    #[test]
    fn the_live_machine_shows_which_folder_lacks_it() {
        const NONE: Knob = Knob::file("n", "/proc/sys/kernel/no_such_knob");
        let found = setting(&Root::live(), &NONE);
        let lacking = found.missing_from.unwrap();
        assert_eq!(lacking.path, "/proc/sys/kernel");
        assert_eq!(lacking.value().unwrap(), "holds no no_such_knob");
    }
}
