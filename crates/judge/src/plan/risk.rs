//! What is risky: planned only when its check is named or the user says so.
//!
//! Risky is what can leave a machine unreachable, unprotected, damaged or silently wrong, and what
//! one cannot see coming from a finding. Not risky, though it has a price that the plan shows as
//! its trade-off: RT throttling and the fair server off (a real-time thread that never sleeps then
//! keeps its CPU: it is what every source asks for first, the CPU is one that was set apart, and
//! undo, a reboot or the watchdog end it); lockup detectors off (a hang is then not reported, and
//! hangs all the same); interrupts moved (the device works on).

use rtproof_host::tune::{Change, UnitWish};

use super::wish::Wish;

/// One kind of risk.
struct Risk {
    holds: fn(&Wish) -> bool,
    /// What can go wrong.
    text: &'static str,
}

/// The kinds.
const RISKS: &[Risk] = &[
    Risk {
        holds: |wish| word(wish, &["mitigations", "nopti", "nospectre_v2", "spectre_v2"]),
        text: "programs of others on this machine can read what they must not",
    },
    Risk {
        holds: |wish| word(wish, &["mce"]) || value(wish, &["/machinecheck/"]),
        text: "corrected memory errors, the sign of a failing module, are no longer seen",
    },
    Risk {
        holds: |wish| word(wish, &["idle"]),
        text: "no CPU ever rests: heat, noise, less turbo, and a guest burns its host's CPUs",
    },
    Risk {
        holds: |wish| word(wish, &["efi"]),
        text: "firmware variables can no longer be written: a trial boot by them, and updates of \
               the firmware, do not work",
    },
    Risk { holds: |wish| word(wish, &["nomodeset"]), text: "the screen may stay dark" },
    Risk {
        holds: |wish| value(wish, &["/intel-rapl", "/powercap/"]),
        text: "the machine draws more power than it was told to: supply and cooling must bear it",
    },
    Risk {
        holds: |wish| value(wish, &["nx_huge_pages"]) || line(wish, "nx_huge_pages"),
        text: "a guest can stop the host (CVE-2018-12207)",
    },
    Risk {
        holds: |wish| stops(wish, &["swap.target"]),
        text: "when memory runs short, programs end instead of being swapped out",
    },
    Risk {
        holds: |wish| stops(wish, STORAGE),
        text: "storage needs it: disks behind it may be lost, the root file system with them",
    },
    Risk {
        holds: |wish| stops(wish, ACCESS),
        text: "the machine may no longer be reached over the network",
    },
    Risk {
        holds: |wish| stops(wish, &["thermald"]),
        text: "it keeps the processor cool; without, the firmware stops it late and hard",
    },
];

/// Units that hold disks.
const STORAGE: &[&str] = &[
    "blk-availability",
    "ceph",
    "dm-event",
    "iscsi",
    "lvm2",
    "mdadm",
    "mdmonitor",
    "multipathd",
    "nfs",
    "nvme",
    "open-iscsi",
    "zfs",
];

/// Units that let people in.
const ACCESS: &[&str] = &[
    "NetworkManager",
    "ModemManager",
    "dhcpcd",
    "ifup",
    "networking",
    "openvpn",
    "ssh",
    "systemd-networkd",
    "wg-quick",
    "wpa_supplicant",
];

/// What can go wrong with it; `None`: nothing that is not plain to see.
pub(super) fn of(wish: &Wish) -> Option<&'static str> {
    RISKS.iter().find(|risk| (risk.holds)(wish)).map(|risk| risk.text)
}

fn word(wish: &Wish, keys: &[&str]) -> bool {
    let key = |parameter: &str| parameter.split('=').next().map(str::to_owned);
    matches!(wish, Wish::Word { parameter, removes: false }
        if key(parameter).is_some_and(|key| keys.contains(&key.as_str())))
}

fn value(wish: &Wish, parts: &[&str]) -> bool {
    matches!(wish, Wish::Change(Change::Value { path, .. })
        if parts.iter().any(|part| path.contains(part)))
}

fn line(wish: &Wish, part: &str) -> bool {
    matches!(wish, Wish::Line { line, .. } if line.contains(part))
}

fn stops(wish: &Wish, units: &[&str]) -> bool {
    let ends = [UnitWish::Stopped, UnitWish::Disabled, UnitWish::Masked];
    matches!(wish, Wish::Change(Change::Unit { unit, want })
        if ends.contains(want) && units.iter().any(|name| unit.starts_with(name)))
}
