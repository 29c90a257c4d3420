//! systemd units that matter to latency, read from their files: no bus, no systemctl, so that a
//! captured machine gives the same result.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Reading, Root, knob::Place, knobs};

/// Folders of unit files, the first that has a unit wins (systemd.unit(5), "Unit File Load Path").
pub(crate) const FOLDERS: &[&str] = &[
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// A unit that systemd itself brings and needs to start (bootup(7)).
const EVERYWHERE: &str = "basic.target";

/// Groups of running system services, cgroup version 2 and 1.
pub(crate) const SLICES: &[&str] =
    &["/sys/fs/cgroup/system.slice", "/sys/fs/cgroup/systemd/system.slice"];

/// Units by name; what the knobs name and the machine has.
pub type Units = BTreeMap<String, Unit>;

/// One unit that is installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unit {
    pub file: String,
    /// Whether it starts by itself: a link in a `*.wants` or `*.requires` folder, or an alias of a
    /// bus name.
    pub enabled: bool,
    /// Whether its file is a link to /dev/null.
    pub masked: bool,
    /// Whether it runs: a service has a control group as long as it does. `None`: not known.
    pub running: Option<bool>,
}

/// Reads the units that knobs name. Absent where the machine has no systemd.
pub fn read(root: &Root) -> Reading<Units> {
    let mut names: Vec<&str> = Vec::new();
    for knob in knobs::all() {
        if let Place::Units(units) = knob.place {
            names.extend(units);
        }
    }
    let mut folders = Vec::new();
    for folder in FOLDERS {
        let listed = root.list_dir(folder);
        match listed.value() {
            Some(entries) => folders.push((*folder, entries.clone())),
            None if listed.is_absent() => {}
            // It may have, or enable, any of them.
            None => return listed.map(|_| Units::new()),
        }
    }
    if folders.is_empty() {
        return Reading::absent(FOLDERS.join(", "));
    }
    // Every system with systemd has this unit: a tree without it holds some files only, and that a
    // unit is not in it means nothing.
    if !folders.iter().any(|(_, entries)| entries.iter().any(|entry| entry == EVERYWHERE)) {
        let path: Vec<&str> = folders.iter().map(|(folder, _)| *folder).collect();
        return Reading::denied(
            path.join(", "),
            format!("only a part of the unit files is here: {EVERYWHERE} is missing"),
        );
    }
    let wanted = match wanted(root, &folders) {
        Ok(wanted) => wanted,
        Err(refused) => return refused.map(|_| Units::new()),
    };
    let running: Option<Vec<String>> =
        SLICES.iter().find_map(|slice| root.list_dir(slice).value().cloned());
    let unit = |name: &str| {
        let folder =
            folders.iter().find(|(_, entries)| entries.iter().any(|entry| entry == name))?;
        let file = format!("{}/{name}", folder.0);
        let masked = root.read_link(&file).value().is_some_and(|target| target == "/dev/null");
        let is_service = name.ends_with(".service");
        let running = running.as_ref().filter(|_| is_service);
        let unit = Unit {
            enabled: wanted.iter().any(|wanted| wanted == name),
            masked,
            running: running.map(|names| names.iter().any(|running| running == name)),
            file,
        };
        Some((name.to_owned(), unit))
    };
    let path: Vec<&str> = folders.iter().map(|(folder, _)| *folder).collect();
    Reading::known(path.join(", "), names.into_iter().filter_map(unit).collect())
}

/// Names in all `*.wants` and `*.requires` folders; a folder that cannot be listed may enable any.
fn wanted(
    root: &Root,
    folders: &[(&str, Vec<String>)],
) -> Result<Vec<String>, Reading<Vec<String>>> {
    let mut names = Vec::new();
    for (folder, entries) in folders {
        let is_list = |entry: &&String| entry.ends_with(".wants") || entry.ends_with(".requires");
        for list in entries.iter().filter(is_list) {
            let listed = root.list_dir(&format!("{folder}/{list}"));
            match listed.value() {
                Some(listed) => names.extend(listed.iter().cloned()),
                None if listed.is_absent() => {}
                None => return Err(listed),
            }
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn a_machine_without_systemd_is_absent() {
        assert!(read(&Tree::new(&[("proc/stat", "")]).root()).is_absent());
    }

    #[test]
    fn a_part_of_the_unit_files_is_not_all() {
        let service = ("etc/systemd/system/chrony.service", "");
        let part = read(&Tree::new(&[service]).root());
        assert!(part.why_unknown().expect("unknown").contains("only a part"), "{part:?}");
        let whole = Tree::new(&[service, ("usr/lib/systemd/system/basic.target", "")]);
        assert!(read(&whole.root()).value().is_some());
    }

    #[test]
    fn wants_folders_enable() {
        let tree = Tree::new(&[
            ("usr/lib/systemd/system/a.service", ""),
            ("usr/lib/systemd/system/x.target.wants/a.service", ""),
        ]);
        let entries = vec!["a.service".to_owned(), "x.target.wants".to_owned()];
        let found = wanted(&tree.root(), &[("/usr/lib/systemd/system", entries)]);
        assert_eq!(found.unwrap(), ["a.service"]);
    }

    #[test]
    fn a_list_that_nobody_asked_for_is_not_an_empty_one() {
        let text = "rtproof capture 1\nfrom live, read by root\n\
            == /etc/systemd/system folder\n|basic.target\n|timers.target.wants\n== end\n";
        let capture = crate::Capture::read(text.as_bytes()).unwrap().unwrap();
        let units = read(&Root::captured(capture));
        assert!(units.why_unknown().unwrap().contains("not in the capture"), "{units:?}");
    }
}
