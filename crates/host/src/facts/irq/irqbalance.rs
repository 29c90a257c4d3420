//! irqbalance: whether it runs, whether it will, and what it leaves alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CpuList, Reading, Root, cpu_list::CpuListError, facts::tasks::Scan};

/// irqbalance, the daemon that rewrites affinities every ten seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Irqbalance {
    /// Process id when it runs.
    pub running: Option<u32>,
    /// Whether its unit is enabled: a link in a `*.wants` folder.
    pub enabled: bool,
    /// CPUs it is configured to leave alone (IRQBALANCE_BANNED_CPULIST or _CPUS), where set.
    pub banned: Option<CpuList>,
    /// The file the banned CPUs came from.
    pub banned_from: Option<String>,
}

/// Where distributions keep its environment: Debian, Red Hat.
const FILES: [&str; 2] = ["/etc/default/irqbalance", "/etc/sysconfig/irqbalance"];

/// Folder of the links that enable units.
const UNITS: &str = "/etc/systemd/system";

pub(super) fn read(root: &Root, scan: &Scan) -> Reading<Irqbalance> {
    scan.processes.clone().and_then(|path, processes| {
        let running =
            processes.into_iter().find(|(name, _)| name == "irqbalance").map(|(_, pid)| pid);
        let enabled = is_enabled(root);
        let known = |banned, banned_from| {
            let path = format!("{path}, {UNITS}, {}", FILES.join(", "));
            Reading::known(path, Irqbalance { running, enabled, banned, banned_from })
        };
        for file in FILES {
            let text = root.read_text(file);
            if text.is_absent() {
                continue;
            }
            let banned = text.and_then(|path, text| match banned(&text) {
                Some((Err(_), found)) => Reading::malformed(path, &found, "a list or mask of CPUs"),
                Some((Ok(cpus), _)) => Reading::known(path, Some(cpus)),
                None => Reading::known(path, None),
            });
            match banned.value() {
                Some(None) => {}
                Some(Some(cpus)) => return known(Some(cpus.clone()), Some(file.to_owned())),
                None => return banned.and_then(|_, _| known(None, None)),
            }
        }
        known(None, None)
    })
}

fn is_enabled(root: &Root) -> bool {
    let folders = root.list_dir(UNITS);
    let wants = folders.value().into_iter().flatten().filter(|name| name.ends_with(".wants"));
    wants.into_iter().any(|name| root.exists(&format!("{UNITS}/{name}/irqbalance.service")))
}

/// The CPUs that an environment file bans; the text where it is neither list nor mask. Of the two
/// variables the mask wins, and an empty one is none, as in irqbalance (cputree.c,
/// `setup_banned_cpus`).
fn banned(text: &str) -> Option<(Result<CpuList, CpuListError>, String)> {
    let set = |name: &str| {
        let value = |line: &str| {
            let line = line.trim();
            let line = line.strip_prefix("export ").unwrap_or(line);
            let value = line.strip_prefix(name)?.strip_prefix('=')?;
            let value = value.split(" #").next().unwrap_or(value);
            Some(value.trim().trim_matches(['"', '\'']).to_owned())
        };
        text.lines().filter_map(value).next_back().filter(|value| !value.is_empty())
    };
    let mask = set("IRQBALANCE_BANNED_CPUS").map(|mask| (CpuList::parse_mask(&mask), mask));
    let list = || set("IRQBALANCE_BANNED_CPULIST").map(|list| (CpuList::parse(&list, None), list));
    mask.or_else(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{reading::State, testing::Tree};

    const INIT: (&str, &str) = ("proc/1/stat", STAT);
    const STAT: &str = "1 (irqbalance) S 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

    fn reading(files: &[(&str, &str)]) -> Reading<Irqbalance> {
        let tree = Tree::new(files);
        let root = tree.root();
        read(&root, &Scan::read(&root))
    }

    #[test]
    fn running_enabled_banned() {
        let tree = Tree::new(&[
            INIT,
            (
                "etc/default/irqbalance",
                "#IRQBALANCE_BANNED_CPULIST=9\n IRQBALANCE_BANNED_CPULIST=\"2-3\" # RT\nIRQBALANCE_BANNED_CPUS=\n",
            ),
            ("etc/systemd/system/multi-user.target.wants/x.service", ""),
        ]);
        let link =
            tree.path().join("etc/systemd/system/multi-user.target.wants/irqbalance.service");
        std::os::unix::fs::symlink("/lib/systemd/system/irqbalance.service", link).unwrap();
        let root = tree.root();
        let balance = read(&root, &Scan::read(&root));
        let balance = balance.value().unwrap();
        assert_eq!((balance.running, balance.enabled), (Some(1), true));
        assert_eq!(balance.banned.as_ref().unwrap().as_slice(), [2, 3]);
        assert_eq!(balance.banned_from.as_deref(), Some("/etc/default/irqbalance"));
    }

    #[test]
    fn masks_comments_and_nothing() {
        let mask = (
            "etc/sysconfig/irqbalance",
            "IRQBALANCE_BANNED_CPUS=fffff000,0000000c\nIRQBALANCE_BANNED_CPULIST=1\n",
        );
        let balance = reading(&[INIT, mask, ("etc/default/irqbalance", "# nothing\n")]);
        let balance = balance.value().unwrap();
        assert_eq!(balance.banned.as_ref().unwrap().to_string(), "2-3,44-63");
        assert!(!balance.enabled);
        let none = reading(&[(INIT.0, &STAT.replace("irqbalance", "init"))]);
        assert_eq!(
            none.value(),
            Some(&Irqbalance { running: None, enabled: false, banned: None, banned_from: None })
        );
    }

    #[test]
    fn unknown_where_processes_or_the_ban_are() {
        assert!(reading(&[("etc/default/irqbalance", "")]).is_absent());
        let odd = reading(&[INIT, ("etc/default/irqbalance", "IRQBALANCE_BANNED_CPULIST=2-x")]);
        assert!(matches!(odd.state, State::Malformed { .. }));
        assert_eq!(odd.path, "/etc/default/irqbalance");
        let refused = reading(&[INIT, ("etc/default/irqbalance/x", "")]);
        assert!(matches!(refused.state, State::Denied { .. }));
    }
}
