//! What the firmware and the boot loader decide, and what the kernel said about it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cpu::Cpus;
use super::kernel::{CommandLine, Kernel};
use super::settings::{Settings, value_at};
use crate::{CpuList, Reading, Root, text};

/// System management interrupts of an Intel CPU since reset (Intel SDM volume 4, MSR_SMI_COUNT).
const SMI_COUNT: u32 = 0x34;

/// Flags of /proc/cpuinfo that say how far the TSC can be trusted.
const TSC_FLAGS: &[&str] =
    &["tsc", "constant_tsc", "nonstop_tsc", "tsc_known_freq", "tsc_reliable"];

/// Firmware, kernel log, timer resolution, next boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Platform {
    /// Maker of the CPU as /proc/cpuinfo names it: `GenuineIntel`. x86 only.
    pub vendor: Reading<String>,
    /// Revision of the microcode. x86 only.
    pub microcode: Reading<String>,
    /// What the CPU promises of its time stamp counter. x86 only.
    pub tsc_flags: Reading<Vec<String>>,
    /// System management interrupts of the first online CPU since reset. Intel only.
    pub smi_count: Reading<u64>,
    /// Time since boot, in seconds.
    pub uptime_s: Reading<u64>,
    /// Resolution of timers (clock_getres of CLOCK_MONOTONIC), in ns: 1 with high-resolution
    /// timers, else a tick.
    pub timer_resolution_ns: Reading<u64>,
    /// What the kernel said.
    pub log: Reading<KernelLog>,
    /// Parameters that the next boot gets.
    pub boot: Reading<super::next_boot::NextBoot>,
    /// Settings that files of sysctl.d make at boot.
    pub sysctl: Reading<Vec<Assigned>>,
    /// The user's notes on the firmware's set-up.
    #[serde(default)]
    pub firmware: Reading<Vec<FirmwareItem>>,
}

impl Platform {
    /// Reads it. Facts read elsewhere are passed in.
    pub fn read(
        root: &Root,
        cpuinfo: &Reading<String>,
        kernel: &Kernel,
        cpus: &Cpus,
        settings: &Settings,
    ) -> Self {
        let vendor = field(cpuinfo, "vendor_id");
        Self {
            smi_count: smi_count(root, &vendor, cpus),
            vendor,
            microcode: field(cpuinfo, "microcode"),
            tsc_flags: field(cpuinfo, "flags").map(|flags| {
                let flags = flags.split_whitespace().filter(|flag| TSC_FLAGS.contains(flag));
                flags.map(str::to_owned).collect()
            }),
            uptime_s: root
                .trimmed("/proc/uptime")
                .parsed("seconds since boot", |text| text.split('.').next()?.parse().ok()),
            timer_resolution_ns: timer_resolution(root),
            log: KernelLog::read(root),
            boot: super::next_boot::NextBoot::read(root, &kernel.release),
            sysctl: read_sysctl(root, settings),
            firmware: read_firmware(root),
        }
    }
}

/// A field of the first CPU; absent where the architecture has none of that name.
fn field(cpuinfo: &Reading<String>, name: &str) -> Reading<String> {
    cpuinfo.clone().and_then(|path, text| match text::field(&text, name) {
        Some(value) => Reading::known(path, value.to_owned()),
        None => Reading::absent(path),
    })
}

/// One CPU is read: the interrupt stops all of them, and each read interrupts its CPU.
fn smi_count(root: &Root, vendor: &Reading<String>, cpus: &Cpus) -> Reading<u64> {
    let first = cpus.online.value().and_then(|online| online.as_slice().first().copied());
    let is_intel = vendor.value().is_some_and(|vendor| vendor == "GenuineIntel");
    match first.filter(|_| is_intel) {
        Some(cpu) => root.register(cpu, SMI_COUNT),
        None => Reading::absent("/dev/cpu/0/msr"),
    }
}

fn timer_resolution(root: &Root) -> Reading<u64> {
    const CALL: &str = "clock_getres";
    let ask = || {
        let resolution = rustix::time::clock_getres(rustix::time::ClockId::Monotonic);
        let ns = i128::from(resolution.tv_sec) * 1_000_000_000 + i128::from(resolution.tv_nsec);
        Ok(ns.to_string())
    };
    let called = root.call(CALL, ask).unwrap_or_else(|| Reading::absent(CALL));
    called.parsed("a number of ns", |text| text.parse().ok())
}

// A user's notes on the firmware's set-up: one line for each item of
// the list of the check `bios-profile`, in a file of the machine's configuration.
//
// Most of what a set-up holds cannot be read from the system. A tick says who looked, when, and in
// which firmware: another version may have reset it.

/// Where the ticks are.
pub const TICKS: &str = "/etc/rtproof-firmware.conf";

/// What the file begins with.
const HEAD: &str = "\
# The set-up of the firmware, as someone looked through it: `rtproof check tick`.
# item | set, kept or absent | date | who | version of the firmware | note
";

/// What the user reports about one advised firmware setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FirmwareChoice {
    /// It is as advised.
    Set,
    /// It is otherwise, on purpose.
    Kept,
    /// This firmware has no such setting.
    Absent,
}

impl FirmwareChoice {
    /// Every one, with its word in the file.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Set, "set"), (Self::Kept, "kept"), (Self::Absent, "absent")];

    /// The word in the file.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(found, _)| *found == self).map_or("", |(_, word)| word)
    }
}

/// One item that a user checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FirmwareItem {
    /// Item, e.g. `smt`.
    pub item: String,
    pub found: FirmwareChoice,
    /// Day, as `2026-11-25`.
    pub date: String,
    #[serde(rename = "who")]
    pub user: String,
    /// Version and date of the firmware then.
    pub firmware: String,
    /// A remark; empty: none.
    pub note: String,
}

/// Reads the ticks; empty where there is no file.
pub(super) fn read_firmware(root: &Root) -> Reading<Vec<FirmwareItem>> {
    let text = root.read_text(TICKS);
    if text.is_absent() {
        return Reading::known(TICKS, Vec::new());
    }
    text.and_then(|path, text| match parse(&text) {
        Ok(ticks) => Reading::known(path, ticks),
        Err(line) => Reading::malformed(
            path,
            &line,
            "item | set, kept or absent | date | who | firmware | note",
        ),
    })
}

/// The ticks of a file; of two for one item the later one holds.
fn parse(text: &str) -> Result<Vec<FirmwareItem>, String> {
    let mut ticks: Vec<FirmwareItem> = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [item, found, date, who, firmware, ref note @ ..] = fields[..] else {
            return Err(line.to_owned());
        };
        let found = FirmwareChoice::ALL.iter().find(|(_, word)| *word == found);
        let Some((found, _)) = found.filter(|_| !item.is_empty() && !firmware.is_empty()) else {
            return Err(line.to_owned());
        };
        ticks.retain(|tick| tick.item != item);
        ticks.push(FirmwareItem {
            item: item.into(),
            found: *found,
            date: date.into(),
            user: who.into(),
            firmware: firmware.into(),
            note: note.join(" "),
        });
    }
    Ok(ticks)
}

/// The text of the file.
pub fn firmware_text(ticks: &[FirmwareItem]) -> String {
    let plain = |text: &str| {
        text.chars().map(|c| if c == '|' || c.is_control() { ' ' } else { c }).collect::<String>()
    };
    let mut text = HEAD.to_owned();
    for tick in ticks {
        let fields = [&tick.item, tick.found.word(), &tick.date, &tick.user, &tick.firmware];
        let mut fields: Vec<String> = fields.map(plain).to_vec();
        fields.extend((!tick.note.is_empty()).then(|| plain(&tick.note)));
        text += &(fields.join(" | ") + "\n");
    }
    text
}

// The few lines of the kernel's log that checks ask about.
//
// Filtered before they are facts: a log names networks, disks and people, and a capture must
// not. Of parameters that the kernel did not take only the names are kept.

const LINES_MAX: usize = 64;

/// Longest line kept, in characters.
const LINE_CHARS_MAX: usize = 240;

/// What init/main.c says of what it hands to the first process.
const UNKNOWN: &str = "Unknown kernel command line parameters ";

/// What kernel/rcu/tree_nocb.h says at boot, before the CPUs.
const OFFLOADED: &str = "Offload RCU callbacks from CPUs: ";

/// What the kernel said since boot, filtered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelLog {
    /// Whether every message since boot was read: none was overwritten, none left out. Only
    /// then does a missing line mean that it was not said.
    pub is_whole: bool,
    /// Names of the parameters that the kernel did not take (5.13 and later); `None` where it said
    /// nothing.
    pub unknown_parameters: Option<Vec<String>>,
    /// Lines about the TSC and other clock sources that were found unstable.
    pub clock: Vec<String>,
    pub microcode: Vec<String>,
    /// CPUs whose RCU callbacks other CPUs run, as said at boot; `None` where nothing was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rcu_offloaded: Option<CpuList>,
}

impl KernelLog {
    /// Reads the log, for root or where `kernel.dmesg_restrict` is 0.
    pub fn read(root: &Root) -> Reading<Self> {
        root.kernel_log(keep).map(|messages| {
            let mut log =
                Self { is_whole: messages.from_start && messages.to_end, ..Self::default() };
            log.is_whole &= messages.lines.len() <= LINES_MAX;
            for line in messages.lines.into_iter().take(LINES_MAX) {
                if let Some(names) = line.strip_prefix(UNKNOWN) {
                    let names = names.split_whitespace().map(str::to_owned);
                    log.unknown_parameters.get_or_insert_default().extend(names);
                } else if let Some(cpus) = offloaded(&line) {
                    let cpus = if cpus == "(none)" { "" } else { cpus };
                    log.rcu_offloaded = CpuList::parse(cpus, None).ok();
                } else if is_microcode(&line) {
                    log.microcode.push(line);
                } else {
                    log.clock.push(line);
                }
            }
            log
        })
    }
}

/// What is kept of a message.
fn keep(message: &str) -> Option<String> {
    if let Some((_, rest)) = message.split_once(UNKNOWN) {
        let quoted = rest.split_once('"')?.1;
        let line = CommandLine::parse(quoted.rsplit_once('"').map_or(quoted, |(line, _)| line));
        let names: Vec<&str> = line.parameters.iter().map(|p| p.key.as_str()).collect();
        return Some(format!("{UNKNOWN}{}", names.join(" ")));
    }
    let is_wanted = is_microcode(message) || is_clock(message) || offloaded(message).is_some();
    is_wanted.then(|| message.chars().take(LINE_CHARS_MAX).collect())
}

/// The CPUs of `rcu: <TAB>Offload RCU callbacks from CPUs: 2-3.`
fn offloaded(message: &str) -> Option<&str> {
    let (_, cpus) = message.split_once(OFFLOADED)?;
    Some(cpus.trim().trim_end_matches('.'))
}

/// arch/x86/kernel/tsc.c, kernel/time/clocksource.c, kernel/sched/clock.c.
fn is_clock(message: &str) -> bool {
    message.contains("Marking TSC unstable")
        || message.contains("TSC found unstable")
        || (message.contains("clocksource") && message.contains("unstable"))
}

/// Loading while the system runs; arch/x86/kernel/cpu/microcode/core.c and before 6.6 its older
/// words.
fn is_microcode(message: &str) -> bool {
    let words =
        ["load: updated on", "Late microcode loading", "late microcode", "Reload completed"];
    message.contains("microcode") && words.iter().any(|word| message.contains(word))
}

// What files of sysctl.d set at boot, and what is in force: where both differ, a reboot or the
// next run of sysctl changes how the machine behaves.

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
pub(super) fn read_sysctl(root: &Root, settings: &Settings) -> Reading<Vec<Assigned>> {
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
pub(crate) fn is_sysctl_setting(line: &str) -> bool {
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

    fn read(tree: &Tree) -> Platform {
        let root = tree.root();
        let cpuinfo = root.read_text("/proc/cpuinfo");
        let settings = Settings::new();
        Platform::read(
            &root,
            &cpuinfo,
            &Kernel::read(&root, &cpuinfo),
            &Cpus::read(&root, &cpuinfo),
            &settings,
        )
    }

    #[test]
    fn fields_of_the_first_cpu() {
        let tree = Tree::new(&[
            (
                "proc/cpuinfo",
                "processor\t: 0\nvendor_id\t: GenuineIntel\nmicrocode\t: 0xf0\n\
                 flags\t\t: fpu tsc constant_tsc sse\n",
            ),
            ("proc/uptime", "4711.02 9000.0\n"),
        ]);
        let platform = read(&tree);
        assert_eq!(platform.vendor.value().unwrap(), "GenuineIntel");
        assert_eq!(platform.microcode.value().unwrap(), "0xf0");
        assert_eq!(platform.tsc_flags.value().unwrap(), &["tsc", "constant_tsc"]);
        assert_eq!(platform.uptime_s.value(), Some(&4711));
        // A folder answers no call.
        assert!(platform.smi_count.is_absent() && platform.log.is_absent());
        assert!(platform.timer_resolution_ns.is_absent());
    }

    #[test]
    fn another_architecture_has_none_of_them() {
        let tree = Tree::new(&[
            ("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\n"),
            ("proc/uptime", "soon"),
        ]);
        let platform = read(&tree);
        assert!(platform.vendor.is_absent() && platform.tsc_flags.is_absent());
        assert!(platform.uptime_s.why_unknown().is_some());
    }

    #[test]
    fn the_live_machine_has_a_timer_resolution() {
        let resolution = timer_resolution(&Root::live());
        assert!(resolution.value().is_some_and(|&ns| (1..=10_000_000).contains(&ns)));
    }
}

#[cfg(test)]
mod firmware_tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn what_is_written_is_read() {
        let tick = |item: &str, found, note: &str| FirmwareItem {
            item: item.into(),
            found,
            date: "2026-11-25".into(),
            user: "alice".into(),
            firmware: "2.1 01/02/2024".into(),
            note: note.into(),
        };
        let ticks =
            [tick("smt", FirmwareChoice::Set, ""), tick("aspm", FirmwareChoice::Kept, "needed")];
        let read =
            |text: &str| read_firmware(&Tree::new(&[("etc/rtproof-firmware.conf", text)]).root());
        assert_eq!(read(&firmware_text(&ticks)).value().unwrap(), &ticks);
        let odd = firmware_text(&[tick("smt", FirmwareChoice::Absent, "a | b\nturbo | set")]);
        assert_eq!(read(&odd).value().unwrap().len(), 1, "{odd}");
        assert_eq!(read("").value().unwrap().len(), 0);
        let twice = firmware_text(&[
            tick("smt", FirmwareChoice::Set, ""),
            tick("smt", FirmwareChoice::Kept, ""),
        ]);
        assert_eq!(read(&twice).value().unwrap()[0].found, FirmwareChoice::Kept);
        for wrong in ["smt", "smt | off | 1 | a | 2.1", "smt | set | 1 | a |", "| set | 1 | a | 2"]
        {
            assert!(read(wrong).why_unknown().is_some(), "{wrong}");
        }
    }

    #[test]
    fn no_file_is_no_tick_and_a_refusal_is_unknown() {
        let bare = Tree::new(&[("proc/version", "")]);
        assert_eq!(read_firmware(&bare.root()).value(), Some(&Vec::new()));
        let folder = Tree::new(&[("etc/rtproof-firmware.conf/x", "")]);
        assert!(read_firmware(&folder.root()).value().is_none());
    }
}

#[cfg(test)]
mod log_tests {
    use super::*;
    use crate::Capture;

    fn of(answer: &str) -> KernelLog {
        let text = format!(
            "rtproof capture 1\nfrom live, read by root\n== kernel log call\n|{answer}\n== end\n"
        );
        let root = Root::captured(Capture::parse(text.as_bytes()).unwrap());
        KernelLog::read(&root).value().unwrap().clone()
    }

    #[test]
    fn lines_are_sorted_by_what_they_are_about() {
        let log = of(
            "from boot\\x0Ato the end\\x0AUnknown kernel command line parameters a isolcpu\\x0A\
                      tsc: Marking TSC unstable due to clocksource watchdog\\x0A\
                      microcode: load: updated on 4 primary CPUs with 0 siblings",
        );
        assert!(log.is_whole);
        assert_eq!(log.unknown_parameters.unwrap(), ["a", "isolcpu"]);
        assert_eq!(log.clock.len(), 1);
        assert_eq!(log.microcode.len(), 1);
        assert!(!of("from later\\x0Ato the end").is_whole);
        assert_eq!(of("from boot\\x0Ato the end").unknown_parameters, None);
    }

    #[test]
    fn offloaded_cpus_are_those_of_the_log() {
        let of = |line: &str| {
            let line = keep(line).unwrap();
            of(&format!("from boot\\x0Ato the end\\x0A{line}")).rcu_offloaded
        };
        let cpus = of("rcu: \tOffload RCU callbacks from CPUs: 2-3.").unwrap();
        assert_eq!(cpus.to_string(), "2-3");
        assert!(of("rcu: \tOffload RCU callbacks from CPUs: (none).").unwrap().is_empty());
    }

    #[test]
    fn of_unknown_parameters_only_the_names_are_kept() {
        let line = "Unknown kernel command line parameters \"BOOT_IMAGE=/vmlinuz secret=x splash\", \
                    will be passed to user space.";
        let kept = keep(line).unwrap();
        assert_eq!(kept, "Unknown kernel command line parameters BOOT_IMAGE secret splash");
        assert_eq!(keep("Command line: root=/dev/sda"), None);
        assert_eq!(keep("microcode: Current revision: 0x000000f0"), None);
        let unstable = "clocksource: timekeeping watchdog on CPU1: Marking clocksource 'tsc' as \
                        unstable because the skew is too large:";
        assert!(keep(unstable).is_some());
    }
}

#[cfg(test)]
mod sysctl_tests {
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
        let found = read_sysctl(&tree.root(), &Settings::new());
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
        assert!(read_sysctl(&Tree::new(&[("proc/stat", "")]).root(), &Settings::new()).is_absent());
    }
}
