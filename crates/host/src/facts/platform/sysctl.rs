//! What files of sysctl.d set at boot, and what is in force: where both differ, a reboot or the
//! next run of sysctl changes how the machine behaves.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::settings::{Settings, value_at};
use crate::{Reading, Root};

/// Folders, the strongest first: of files of one name the first is read (sysctl.d(5)).
pub(crate) const FOLDERS: &[&str] =
    &["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d"];
/// Read after all of them by procps; systemd reads it where 99-sysctl.conf links to it.
const LAST: &str = "/etc/sysctl.conf";

/// Settings that can change latency, as paths below /proc/sys.
const NAMES: &[&str] = &[
    "kernel/hung_task_timeout_secs",
    "kernel/nmi_watchdog",
    "kernel/numa_balancing",
    "kernel/sched_autogroup_enabled",
    "kernel/sched_rt_period_us",
    "kernel/sched_rt_runtime_us",
    "kernel/soft_watchdog",
    "kernel/split_lock_mitigate",
    "kernel/timer_migration",
    "kernel/watchdog",
    "net/core/busy_poll",
    "net/core/busy_read",
    "vm/compaction_proactiveness",
    "vm/dirty_background_bytes",
    "vm/dirty_background_ratio",
    "vm/dirty_bytes",
    "vm/dirty_expire_centisecs",
    "vm/dirty_ratio",
    "vm/dirty_writeback_centisecs",
    "vm/stat_interval",
    "vm/swappiness",
    "vm/zone_reclaim_mode",
];

/// One setting that a file makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Assigned {
    /// Name with dots: `vm.swappiness`.
    pub name: String,
    /// Value that the file gives.
    pub value: String,
    pub file: String,
    pub live: Reading<String>,
}

/// Reads the files. Absent where no folder is there.
pub(super) fn read(root: &Root, settings: &Settings) -> Reading<Vec<Assigned>> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut state = Reading::absent(FOLDERS.join(", "));
    let mut is_one_there = false;
    for folder in FOLDERS {
        let listed = root.list_dir(folder);
        match listed.value() {
            Some(names) => {
                is_one_there = true;
                for name in names.iter().filter(|name| name.ends_with(".conf")) {
                    files.entry(name.clone()).or_insert_with(|| format!("{folder}/{name}"));
                }
            }
            None if !listed.is_absent() => state = listed.map(|_| Vec::new()),
            None => {}
        }
    }
    if !is_one_there {
        return state;
    }
    let mut assigned: BTreeMap<&str, (String, String)> = BTreeMap::new();
    for file in files.into_values().chain([LAST.to_owned()]) {
        let text = root.read_text(&file);
        for (name, value) in text.value().into_iter().flat_map(|text| lines(text)) {
            assigned.insert(name, (value, file.clone()));
        }
    }
    let live = |path: String| match value_at(settings, &path) {
        Some(reading) => reading.clone(),
        None => root.trimmed(&path),
    };
    let assigned = assigned.into_iter().map(|(path, (value, file))| Assigned {
        name: path.replace('/', "."),
        value,
        file,
        live: live(format!("/proc/sys/{path}")),
    });
    Reading::known(FOLDERS.join(", "), assigned.collect())
}

/// Whether a line of such a file makes a setting that is read.
pub(crate) fn is_setting(line: &str) -> bool {
    !lines(line).is_empty()
}

/// `vm.swappiness = 10`; the first separator decides whether `.` or `/` is meant, `-` at the start
/// forgives errors.
fn lines(text: &str) -> Vec<(&'static str, String)> {
    let line = |line: &str| {
        let line = line.trim();
        if line.starts_with(['#', ';']) {
            return None;
        }
        let (name, value) = line.split_once('=')?;
        let name = name.trim().trim_start_matches('-').replace('.', "/");
        let known = NAMES.iter().find(|known| **known == name)?;
        Some((*known, value.trim().to_owned()))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn the_last_file_by_name_wins_and_the_strongest_folder_hides_others() {
        let tree = Tree::new(&[
            ("usr/lib/sysctl.d/10-a.conf", "vm.swappiness = 60\nkernel.timer_migration=1\n"),
            ("usr/lib/sysctl.d/50-b.conf", "vm.swappiness = 1\n"),
            ("etc/sysctl.d/50-b.conf", "# vm.swappiness = 2\n-vm/swappiness=10\nnet.x = 1\n"),
            ("etc/sysctl.d/README", "vm.swappiness = 3\n"),
            ("proc/sys/vm/swappiness", "60\n"),
        ]);
        let found = read(&tree.root(), &Settings::new());
        let found = found.value().unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[0].name.as_str(), found[0].value.as_str()),
            ("kernel.timer_migration", "1")
        );
        assert!(found[0].live.is_absent());
        assert_eq!(found[1].file, "/etc/sysctl.d/50-b.conf");
        assert_eq!(found[1].value, "10");
        assert_eq!(found[1].live.value().unwrap(), "60");
    }

    #[test]
    fn no_folder_is_absent() {
        assert!(read(&Tree::new(&[("proc/stat", "")]).root(), &Settings::new()).is_absent());
    }
}
