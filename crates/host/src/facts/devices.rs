//! Devices and what drives them: consoles, graphics, modules that taint, the state of auditing, the
//! target that the machine boots into, a Raspberry Pi's firmware settings.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::net;
use super::settings::missing_from;
use crate::text::between;
use crate::{Reading, Root};

/// Bits of /proc/sys/kernel/tainted that a module sets: proprietary, forced, staging, out of tree,
/// unsigned, live patch, auxiliary, test (Documentation/admin-guide/tainted-kernels.rst).
const TAINTED_BY_MODULE: u64 =
    1 | 1 << 1 | 1 << 10 | 1 << 12 | 1 << 13 | 1 << 15 | 1 << 16 | 1 << 18;

/// Where a Raspberry Pi keeps what its firmware sets.
const PI_CONFIGS: &[&str] = &["/boot/firmware/config.txt", "/boot/config.txt"];

/// Settings of it that decide about clocks.
const PI_KEYS: &[&str] = &[
    "arm_boost",
    "arm_freq",
    "arm_freq_min",
    "core_freq",
    "core_freq_fixed",
    "core_freq_min",
    "force_turbo",
    "gpu_freq",
    "over_voltage",
];

/// Devices and what drives them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Devices {
    /// Consoles that the kernel writes its messages to (/proc/consoles).
    pub consoles: Reading<Vec<Console>>,
    /// Graphics cards and their drivers.
    pub graphics: Reading<Vec<Card>>,
    /// Loaded modules that taint the kernel, with the letters of why (/sys/module/NAME/taint).
    pub tainting_modules: Reading<BTreeMap<String, String>>,
    /// Target that systemd boots into, e.g. `multi-user.target`.
    pub default_target: Reading<String>,
    /// Whether the kernel audits: 0 not, 1 it does, 2 it does and that is locked (audit_status).
    pub audit_enabled: Reading<u32>,
    /// Clock settings of a Raspberry Pi's config.txt; those under a condition have it behind their
    /// name, `arm_freq [pi4]`. `None` on other machines.
    pub raspberry_pi: Reading<Option<BTreeMap<String, String>>>,
}

/// A console of the kernel (/proc/consoles).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Console {
    /// Name, e.g. `ttyS0`.
    pub name: String,
    /// Whether it has its own thread and is written without the console lock (flag N).
    pub nbcon: bool,
}

/// A graphics card, as /sys/class/drm names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Card {
    /// Name, e.g. `card0`.
    pub name: String,
    /// Driver, e.g. `i915`; `None` where it names none.
    pub driver: Option<String>,
}

impl Devices {
    /// Reads them; the kernel's taint is passed in.
    pub fn read(root: &Root, tainted: &Reading<u64>) -> Self {
        Self {
            consoles: root
                .read_text("/proc/consoles")
                .parsed("a name and flags in () in each line", consoles),
            graphics: graphics(root),
            tainting_modules: tainting_modules(root, tainted),
            default_target: default_target(root),
            audit_enabled: audit_enabled(root),
            raspberry_pi: raspberry_pi(root),
        }
    }
}

/// `ttyS0                -W- (EC p a)    4:64`.
fn consoles(text: &str) -> Option<Vec<Console>> {
    let console = |line: &str| {
        let name = line.split_whitespace().next()?.to_owned();
        Some(Console { name, nbcon: between(line, '(', ')')?.contains('N') })
    };
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(console).collect()
}

fn graphics(root: &Root) -> Reading<Vec<Card>> {
    const FOLDER: &str = "/sys/class/drm";
    let names = root.list_dir(FOLDER);
    if names.is_absent()
        && let Some(lacking) = missing_from(root, FOLDER)
    {
        return lacking.map(|_| Vec::new());
    }
    names.map(|names| {
        let is_card = |name: &&String| {
            let number = name.strip_prefix("card");
            number.is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
        };
        let card = |name: &String| {
            let link = root.read_link(&format!("{FOLDER}/{name}/device/driver"));
            let driver = link.value().and_then(|link| link.rsplit('/').next()).map(str::to_owned);
            Card { name: name.clone(), driver }
        };
        names.iter().filter(is_card).map(card).collect()
    })
}

/// Not from /proc/modules, which shows where each one lies in memory.
fn tainting_modules(root: &Root, tainted: &Reading<u64>) -> Reading<BTreeMap<String, String>> {
    const FOLDER: &str = "/sys/module";
    if let Some(bits) = tainted.value()
        && bits & TAINTED_BY_MODULE == 0
    {
        return Reading::known(tainted.path.clone(), BTreeMap::new());
    }
    let names = root.list_dir(FOLDER).with_path(format!("{FOLDER}/*/taint"));
    names.and_then(|path, names| {
        let taint = |name: String| (root.trimmed(&format!("{FOLDER}/{name}/taint")), name);
        let found: Vec<_> = names.into_iter().map(taint).collect();
        // What is built in has no such file, a module has: where none has, they were left out.
        if !found.iter().any(|(taint, _)| taint.value().is_some()) {
            return Reading::absent(path);
        }
        let tainting = found.into_iter().filter_map(|(taint, name)| {
            Some((name, taint.value().filter(|letters| !letters.is_empty())?.clone()))
        });
        Reading::known(path, tainting.collect())
    })
}

fn default_target(root: &Root) -> Reading<String> {
    let folders = ["/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];
    let link = |folder: &str| root.read_link(&format!("{folder}/default.target"));
    let [etc, usr, lib] = folders;
    let found = link(etc).or_else(|| link(usr)).or_else(|| link(lib));
    found.map(|target| target.rsplit('/').next().unwrap_or_default().to_owned())
}

/// As `auditctl -s`: a question to the kernel that root alone may ask.
fn audit_enabled(root: &Root) -> Reading<u32> {
    const CALL: &str = "audit status";
    /// include/uapi/linux/audit.h: AUDIT_GET; `enabled` is the second number of audit_status.
    const AUDIT_GET: u16 = 1_000;
    let ask = || {
        let socket = net::open_socket(rustix::net::netlink::AUDIT)?;
        let status = net::ask_kernel(&socket, AUDIT_GET, &[])?;
        let enabled = status.get(4..8).and_then(|bytes| bytes.try_into().ok());
        let enabled = enabled.map(u32::from_ne_bytes).ok_or(rustix::io::Errno::BADMSG)?;
        Ok(format!("enabled {enabled}"))
    };
    let called = root.call(CALL, ask).unwrap_or_else(|| Reading::absent(CALL));
    called.parsed("enabled and a number", |text| text.strip_prefix("enabled ")?.parse().ok())
}

fn raspberry_pi(root: &Root) -> Reading<Option<BTreeMap<String, String>>> {
    const MODEL: &str = "/proc/device-tree/model";
    let model = root.trimmed(MODEL);
    if model.is_absent()
        && let Some(lacking) = missing_from(root, MODEL)
    {
        return lacking.map(|_| None);
    }
    model.and_then(|path, model| {
        if !model.starts_with("Raspberry Pi") {
            return Reading::known(path, None);
        }
        let [first, second] = [0, 1].map(|index| PI_CONFIGS[index]);
        let text = root.read_text(first).or_else(|| root.read_text(second));
        text.map(|text| Some(pi_settings(&text)))
    })
}

/// Lines `key=value` under conditions like `[pi4]`; the last of each counts.
fn pi_settings(text: &str) -> BTreeMap<String, String> {
    let mut condition = String::new();
    let mut settings = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            condition = match section {
                "all" => String::new(),
                section => format!(" [{section}]"),
            };
        } else if let Some((key, value)) = line.split_once('=')
            && PI_KEYS.contains(&key.trim())
        {
            settings.insert(format!("{}{condition}", key.trim()), value.trim().to_owned());
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn consoles_with_and_without_flags() {
        let text = "tty0                 -WU (EC  p  )    4:1\nttyS0                -W- (E N p a)    4:64\n";
        let found = consoles(text).unwrap();
        let found: Vec<_> = found.iter().map(|c| (c.name.as_str(), c.nbcon)).collect();
        assert_eq!(found, [("tty0", false), ("ttyS0", true)]);
        assert_eq!(consoles(""), Some(Vec::new()));
        assert!(consoles("tty0 -WU").is_none());
    }

    #[test]
    fn only_modules_that_taint_and_only_where_one_does() {
        let tree = Tree::new(&[
            ("sys/module/nvidia/taint", "POE\n"),
            ("sys/module/loop/taint", "\n"),
            ("sys/module/printk/parameters/time", "Y\n"),
        ]);
        let read = |bits| tainting_modules(&tree.root(), &Reading::known("/t", bits));
        assert_eq!(read(1 << 9).value(), Some(&BTreeMap::new()));
        assert_eq!(read(1 << 9).path, "/t");
        let found = read(1 | 1 << 12);
        assert_eq!(found.path, "/sys/module/*/taint");
        assert_eq!(found.value(), Some(&BTreeMap::from([("nvidia".into(), "POE".into())])));
    }

    #[test]
    fn modules_of_which_none_says_whether_it_taints_are_not_known() {
        let tree = Tree::new(&[("sys/module/nvidia/refcnt", "0\n")]);
        assert!(tainting_modules(&tree.root(), &Reading::absent("/t")).value().is_none());
        let tree = Tree::new(&[("sys/module/loop/taint", "\n"), ("sys/module/x/refcnt", "0\n")]);
        let found = tainting_modules(&tree.root(), &Reading::absent("/t"));
        assert_eq!(found.value(), Some(&BTreeMap::new()));
    }

    #[test]
    fn a_partial_machine_leaves_graphics_and_audit_unknown() {
        let tree = Tree::new(&[("sys/class/net/lo/mtu", "1")]);
        let devices = Devices::read(&tree.root(), &Reading::absent("/t"));
        assert!(devices.graphics.is_absent() && devices.audit_enabled.is_absent());
        assert!(devices.raspberry_pi.is_absent() && devices.default_target.is_absent());
    }

    #[test]
    fn settings_of_a_raspberry_pi() {
        let text =
            "# x\narm_freq=1500\n[pi4]\narm_freq = 1800\n[all]\ndtparam=audio=on\nforce_turbo=1\n";
        let tree = Tree::new(&[
            ("proc/device-tree/model", "Raspberry Pi 4 Model B\0"),
            ("boot/config.txt", text),
        ]);
        let found = raspberry_pi(&tree.root());
        let settings = found.value().unwrap().as_ref().unwrap();
        let pairs: Vec<_> = settings.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(pairs, ["arm_freq=1500", "arm_freq [pi4]=1800", "force_turbo=1"]);
        let other = Tree::new(&[("proc/device-tree/model", "BeagleBone\0")]);
        assert_eq!(raspberry_pi(&other.root()).value(), Some(&None));
    }

    #[test]
    fn targets_by_their_name() {
        let tree = Tree::new(&[("etc/systemd/system/x", "")]);
        assert!(default_target(&tree.root()).is_absent());
    }
}
