//! Interrupts: their requested and effective CPUs, and what moves them.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tasks::TaskScan;
use crate::cpu_list::CpuListError;
use crate::reading::ReadingState;
use crate::{CpuList, Reading, Root};

/// Interrupts of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Irqs {
    /// Affinity that new interrupts get (/proc/irq/default_smp_affinity).
    pub default_affinity: Reading<CpuList>,
    /// Every numbered interrupt of a device that has an action, ascending.
    pub irqs: Reading<Vec<Irq>>,
    /// Lines that have a folder in /proc/irq and no handler, with their effective affinity: no
    /// interrupt comes there until a driver asks for one.
    #[serde(default)]
    pub unhandled: Reading<Vec<(u32, CpuList)>>,
    pub irqbalance: Reading<Irqbalance>,
}

impl Irqs {
    /// Reads the interrupts: two files for each. `scan` says whether irqbalance runs,
    /// `interrupts` is /proc/interrupts, `existing` the CPUs there are: masks often name more.
    pub fn read(
        root: &Root,
        scan: &TaskScan,
        interrupts: &Reading<String>,
        existing: Option<&CpuList>,
    ) -> Self {
        let cpus = |cpus: CpuList| cpus.within(existing);
        let default = root.cpu_mask("/proc/irq/default_smp_affinity");
        let mut irqs = read_interrupts(root, interrupts);
        if let ReadingState::Known { value } = &mut irqs.state {
            for irq in value {
                irq.requested = std::mem::take(&mut irq.requested).map(cpus);
                irq.effective = std::mem::take(&mut irq.effective).map(cpus);
            }
        }
        let table = interrupts.value().map_or("", String::as_str);
        let of_cpus = interrupt_table(table).1.filter(|row| row_is_of_cpu(row.about));
        let of_devices = irqs.value().into_iter().flatten().map(|irq| irq.number);
        let handled: BTreeSet<u32> =
            of_cpus.filter_map(|row| row.label.parse().ok()).chain(of_devices).collect();
        let unhandled = |number: u32| {
            let path = format!("/proc/irq/{number}/effective_affinity_list");
            Some((number, cpus(root.cpu_list(&path).into_value()?)))
        };
        Self {
            default_affinity: default.map(cpus),
            unhandled: root.list_numbered("/proc/irq", "").map(|numbers| {
                let numbers = numbers.into_iter().filter(|number| !handled.contains(number));
                numbers.filter_map(unhandled).collect()
            }),
            irqs,
            irqbalance: read_irqbalance(root, scan),
        }
    }
}

// /proc/interrupts: number, counts, chip, hardware line, handlers; in columns that every chip
// driver fills a little differently (kernel/irq/proc.c, `show_interrupts`).

/// A numbered interrupt with its handlers and its affinity (/proc/irq).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Irq {
    /// Number. Not an identity: it changes over boots and hotplug.
    pub number: u32,
    /// Handlers (last columns of /proc/interrupts, or /sys/kernel/irq/N/actions).
    pub actions: String,
    /// Chip and hardware line, e.g. `PCI-MSIX-0000:00:02.0 1-edge`.
    pub chip: String,
    /// Affinity requested (smp_affinity_list).
    pub requested: Reading<CpuList>,
    /// Affinity in force (effective_affinity_list).
    pub effective: Reading<CpuList>,
    /// Interrupts since boot, all CPUs.
    pub count: u64,
    /// Whether the kernel refuses to move it, as the interrupts of a device's queues that it
    /// spreads by itself ("managed"). From 6.12 its file says so by its mode; false: not known.
    #[serde(default)]
    pub managed: bool,
}

/// Every numbered interrupt of a device that has an action, ascending.
fn read_interrupts(root: &Root, interrupts: &Reading<String>) -> Reading<Vec<Irq>> {
    interrupts.as_ref().and_then(|path, text| {
        let (columns, rows) = interrupt_table(text);
        if columns.is_empty() {
            let header = text.lines().next().unwrap_or_default();
            return Reading::malformed(path, header, "a header CPU0 CPU1 ...");
        }
        let mut irqs: Vec<Irq> =
            rows.filter_map(|row| numbered(&row)).filter_map(|line| irq(root, line)).collect();
        irqs.sort_unstable_by_key(|irq| irq.number);
        Reading::known(path, irqs)
    })
}

#[derive(Debug, PartialEq, Eq)]
struct Line {
    number: u32,
    count: u64,
    chip: String,
    /// `None`: the line shows none, or is of a form not known here.
    actions: Option<String>,
}

fn irq(root: &Root, line: Line) -> Option<Irq> {
    let Line { number, count, chip, actions } = line;
    let ask = || {
        let actions = root.trimmed(&format!("/sys/kernel/irq/{number}/actions"));
        actions.value().filter(|actions| !actions.is_empty()).cloned()
    };
    let actions = actions.or_else(ask)?;
    if is_of_cpu(&chip, &actions) {
        return None;
    }
    let list = |name| root.cpu_list(&format!("/proc/irq/{number}/{name}"));
    let (requested, effective) = (list("smp_affinity_list"), list("effective_affinity_list"));
    let managed = is_managed(root, number);
    Some(Irq { number, actions, chip, requested, effective, count, managed })
}

/// Whether the file may not be written (kernel/irq/proc.c, `register_irq_proc`).
fn is_managed(root: &Root, number: u32) -> bool {
    const WRITE: u32 = 0o222;
    let path = format!("/proc/irq/{number}/smp_affinity_list");
    let ask = || Ok(format!("{:o}", rustix::fs::stat(&path)?.st_mode & 0o7777));
    let mode = root.call(&format!("mode of {path}"), ask);
    let mode = mode.and_then(|mode| u32::from_str_radix(mode.value()?, 8).ok());
    mode.is_some_and(|mode| mode & WRITE == 0)
}

/// A line of a table with a column for each CPU: /proc/interrupts, /proc/softirqs.
#[derive(Debug)]
pub(crate) struct InterruptRow<'t> {
    pub(crate) label: &'t str,
    /// Fewer than columns for `ERR` and `MIS`, which are of no CPU, and where a CPU went away
    /// between header and line.
    pub(crate) counts: Vec<u64>,
    /// What follows the counts.
    pub(crate) about: &'t str,
}

/// The CPUs of the columns, the online ones, and the lines.
pub(crate) fn interrupt_table(text: &str) -> (Vec<u32>, impl Iterator<Item = InterruptRow<'_>>) {
    let (header, lines) = text.split_once('\n').unwrap_or((text, ""));
    let cpu = |word: &str| word.strip_prefix("CPU")?.parse().ok();
    let cpus: Vec<u32> = header.split_whitespace().filter_map(cpu).collect();
    let columns = cpus.len();
    (cpus, lines.lines().filter_map(move |line| row(line, columns)))
}

fn row(line: &str, columns: usize) -> Option<InterruptRow<'_>> {
    let (label, rest) = line.split_once(':')?;
    let (mut counts, mut about) = (Vec::with_capacity(columns), rest.trim_start());
    while counts.len() < columns {
        let end = about.find(char::is_whitespace).unwrap_or(about.len());
        let Ok(count) = about[..end].parse() else { break };
        counts.push(count);
        about = about[end..].trim_start();
    }
    Some(InterruptRow { label: label.trim(), counts, about: about.trim_end() })
}

/// `None` for lines that are not numbered: NMI, LOC, IPI0 ...
fn numbered(row: &InterruptRow<'_>) -> Option<Line> {
    let number = row.label.parse().ok()?;
    let (chip, actions) = chip_and_actions(row.about);
    let count = row.counts.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
    Some(Line { number, count, chip, actions })
}

/// Whether a numbered line is of the CPU itself, by what follows its counts.
pub(crate) fn row_is_of_cpu(about: &str) -> bool {
    let (chip, actions) = chip_and_actions(about);
    is_of_cpu(&chip, &actions.unwrap_or_default())
}

/// The handlers of a numbered line, by what follows its counts.
pub(crate) fn actions(about: &str) -> Option<String> {
    chip_and_actions(about).1
}

/// Chip and hardware line, then the handlers. Columns are at least two spaces apart, names within
/// a column one, and the last column before the handlers ends in the hardware line.
fn chip_and_actions(text: &str) -> (String, Option<String>) {
    let columns: Vec<&str> =
        text.split("  ").map(str::trim).filter(|column| !column.is_empty()).collect();
    let ends_in_line = |column: &&str| column.rsplit(' ').next().is_some_and(is_hardware_line);
    let before = match columns.iter().position(ends_in_line) {
        Some(at) => at + 1,
        // No hardware line, as with XT-PIC: the last column holds the handlers.
        None => columns.len().saturating_sub(1).max(1).min(columns.len()),
    };
    let (chip, actions) = columns.split_at(before);
    let actions = (!actions.is_empty()).then(|| actions.join(" "));
    (chip.join(" "), actions)
}

/// First and last line of a range.
type Lines = (u32, u32);

const ALL: &[Lines] = &[(0, u32::MAX)];

/// drivers/irqchip/irq-gic-v3.c: private interrupts of a CPU, and the extended ones.
const PRIVATE_TO_GIC: &[Lines] = &[(0, 31), (1056, 1119)];

/// Controllers, and which of their lines are each CPU's own. `GICv2m` is a device's.
const CPU_CONTROLLERS: &[(&str, &[Lines])] = &[
    ("GIC ", PRIVATE_TO_GIC),
    ("GIC-", PRIVATE_TO_GIC),
    ("GICv1 ", PRIVATE_TO_GIC),
    ("GICv2 ", PRIVATE_TO_GIC),
    ("GICv3 ", PRIVATE_TO_GIC),
    ("GICv4 ", PRIVATE_TO_GIC),
    ("GICv5-PPI", ALL),
    ("AIC-FIQ", ALL),
    ("bcm2836-timer", ALL),
    ("bcm2836-pmu", ALL),
    ("bcm2836-ipi", ALL),
    // drivers/irqchip/irq-armada-370-xp.c
    ("MPIC ", &[(0, 28)]),
    ("armada_370_xp_irq ", &[(0, 28)]),
    ("RISC-V INTC", ALL),
    ("riscv-intc", ALL),
    ("CPUINTC", ALL),
    ("MIPS GIC Local", ALL),
    // arch/mips/kernel/cevt-r4k.c: two by software, the seventh is the timer's.
    ("MIPS ", &[(0, 1), (7, 7)]),
    ("ARC core Intc", ALL),
    ("ARC In-core Intc", ALL),
    ("XIVE-IPI", ALL),
    // arch/powerpc/include/asm/xics.h: the lines of the presentation controller itself
    ("XICS ", &[(0, 2)]),
    ("xen-percpu", ALL),
];

/// Timers and counters of the CPU itself whose controller is not known.
const CPU_HANDLERS: &[&str] = &[
    "arch_timer",
    "arm-pmu",
    "arm_global_timer",
    "kvm guest vtimer",
    "local-timer",
    "local_timer",
    "riscv-timer",
    "twd",
];

/// Whether an interrupt is raised by each CPU for itself (timers, counters, calls between CPUs):
/// no affinity moves it, and no device is behind it.
fn is_of_cpu(chip: &str, actions: &str) -> bool {
    let line = chip.split(' ').rev().find_map(|word| {
        let digits = word.split('-').next().unwrap_or_default();
        digits.parse::<u32>().ok()
    });
    let is_its = |(name, lines): &(&str, &[Lines])| {
        let is_own = |line| lines.iter().any(|&(first, last)| (first..=last).contains(&line));
        chip.starts_with(name) && line.is_none_or(is_own)
    };
    let is_named = |name: &&str| {
        let before = actions.strip_suffix(name);
        before.is_some_and(|before| before.is_empty() || before.ends_with([' ', '-', '_']))
    };
    CPU_CONTROLLERS.iter().any(is_its) || CPU_HANDLERS.iter().any(is_named)
}

/// `27`, `2-edge`, `-event`, or the trigger that follows the number on ARM.
fn is_hardware_line(word: &str) -> bool {
    let rest = word.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = rest.len() < word.len() && (rest.is_empty() || rest.starts_with('-'));
    numbered || word.starts_with('-') || word == "Level" || word == "Edge"
}

// irqbalance: whether it runs, whether it will, and what it leaves alone.

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

fn read_irqbalance(root: &Root, scan: &TaskScan) -> Reading<Irqbalance> {
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
mod interrupts_tests {
    use super::*;
    use crate::facts::tasks::TaskScan;
    use crate::testing::Tree;

    #[test]
    fn chips_of_many_kinds() {
        let split = |text| {
            let (chip, actions) = chip_and_actions(text);
            (chip, actions.unwrap_or_else(|| "-".into()))
        };
        for (text, chip, actions) in [
            ("IO-APIC   2-edge      timer", "IO-APIC 2-edge", "timer"),
            (
                "PCI-MSI 524288-edge      nvme0q0, nvme0q1",
                "PCI-MSI 524288-edge",
                "nvme0q0, nvme0q1",
            ),
            ("PCI-MSIX-0000:00:01.0   0-edge      a b", "PCI-MSIX-0000:00:01.0 0-edge", "a b"),
            ("GICv3  27 Level     arch_timer", "GICv3 27 Level", "arch_timer"),
            ("GICv2 29 Level     arch_timer", "GICv2 29 Level", "arch_timer"),
            ("pinctrl-bcm2835  26 Edge      button", "pinctrl-bcm2835 26 Edge", "button"),
            ("xen-dyn    -event     xenbus", "xen-dyn -event", "xenbus"),
            ("XT-PIC-XT-PIC    cascade", "XT-PIC-XT-PIC", "cascade"),
            ("SiFive PLIC  10  ttyS0", "SiFive PLIC 10", "ttyS0"),
            ("IO-APIC   9-fasteoi   acpi, 8250  x", "IO-APIC 9-fasteoi", "acpi, 8250 x"),
            ("IO-APIC   8-edge", "IO-APIC 8-edge", "-"),
            ("GICv3  27 Level", "GICv3 27 Level", "-"),
            ("None", "None", "-"),
            ("", "", "-"),
        ] {
            assert_eq!(split(text), (chip.to_owned(), actions.to_owned()), "{text}");
        }
    }

    const TEXT: &str = "\
            CPU0       CPU1       \n\
  8:          3          0  IO-APIC   8-edge\n\
 10:          1          1  IO-APIC  10-edge\n\
 24:         10         32  PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n\
  9:          5  IO-APIC   9-fasteoi   acpi\n\
NMI:          1          2   Non-maskable interrupts\n\
ERR:          0\n";

    #[test]
    fn numbered_lines_with_an_action() {
        let tree = Tree::new(&[
            ("proc/interrupts", TEXT),
            ("proc/irq/24/smp_affinity_list", "0-1\n"),
            ("proc/irq/24/effective_affinity_list", "1\n"),
            ("proc/irq/9/smp_affinity_list", "x\n"),
            ("proc/irq/default_smp_affinity", "ff,00000003\n"),
            ("sys/kernel/irq/8/actions", "rtc0\n"),
            ("sys/kernel/irq/10/actions", "\n"),
        ]);
        let root = tree.root();
        let read = |existing: Option<&CpuList>| {
            let interrupts = root.read_text("/proc/interrupts");
            Irqs::read(&root, &TaskScan::read(&root), &interrupts, existing)
        };
        let there = read(Some(&CpuList::new(1..4)));
        assert_eq!(there.default_affinity.value().unwrap().to_string(), "1");
        assert_eq!(there.irqs.value().unwrap()[2].requested.value().unwrap().as_slice(), [1]);
        let irqs = read(None);
        assert_eq!(irqs.default_affinity.value().unwrap().to_string(), "0-1,32-39");
        let irqs = irqs.irqs.value().unwrap();
        let numbers: Vec<u32> = irqs.iter().map(|irq| irq.number).collect();
        assert_eq!(numbers, [8, 9, 24], "10 has no action");
        assert_eq!(irqs[0].actions, "rtc0");
        assert_eq!((irqs[1].count, irqs[1].actions.as_str()), (5, "acpi"));
        assert!(irqs[1].requested.why_unknown().unwrap().contains("list"));
        assert!(irqs[1].effective.is_absent());
        assert_eq!((irqs[2].count, irqs[2].chip.as_str()), (42, "PCI-MSIX-0000:00:02.0 1-edge"));
        assert_eq!(irqs[2].effective.value().unwrap().as_slice(), [1]);
    }

    #[test]
    fn interrupts_of_the_cpu_itself_are_told_by_controller_and_line() {
        for (about, is_own) in [
            ("GICv2  27 Level     gt", true),
            ("GIC-0  29 Level     twd", true),
            ("GIC  29  twd", true),
            ("GICv3  23 Level     arm-pmu", true),
            ("GICv3 1060 Level     extended", true),
            ("GICv3  32 Level     uart-pl011", false),
            ("GICv2m  5 Edge      eth0", false),
            ("GICv5-PPI  27 Level     arch_timer", true),
            ("GICv5-SPI  4 Level     ttyAMA0", false),
            ("ITS-MSI 27 Edge      nvme0q0", false),
            ("RISC-V INTC   5 Edge      riscv-timer", true),
            ("SiFive PLIC  10 Edge      ttyS0", false),
            ("CPUINTC  11  timer", true),
            ("MIPS   7  timer", true),
            ("MIPS   3  eth0", false),
            ("MIPS GIC Local   1  timer", true),
            ("xen-percpu    -virq     timer0", true),
            ("xen-dyn    -event     xenbus", false),
            ("IO-APIC   2-edge      timer", false),
            ("PCI-MSIX-0000:00:02.0   1-edge      eth0", false),
            ("bcm2836-timer   1 Edge      arch_timer", true),
            ("ARMCTRL-level   1 Edge      3f00b880.mailbox", false),
            ("unheard-of  3 Edge      kvm guest vtimer", true),
            ("unheard-of  3 Edge      mytwd", false),
        ] {
            assert_eq!(row_is_of_cpu(about), is_own, "{about}");
        }
    }

    #[test]
    fn those_of_the_cpu_are_neither_a_device_nor_without_a_handler() {
        let tree = Tree::new(&[
            (
                "proc/interrupts",
                "     CPU0 CPU1\n 11: 90 80 GICv3  27 Level     arch_timer\n 40: 1 2 GICv3  70 Level     a\n",
            ),
            ("proc/irq/11/effective_affinity_list", "0-1\n"),
            ("proc/irq/40/effective_affinity_list", "0\n"),
            ("proc/irq/41/effective_affinity_list", "1\n"),
        ]);
        let root = tree.root();
        let interrupts = root.read_text("/proc/interrupts");
        let irqs = Irqs::read(&root, &TaskScan::read(&root), &interrupts, None);
        let devices: Vec<u32> = irqs.irqs.value().unwrap().iter().map(|irq| irq.number).collect();
        assert_eq!(devices, [40]);
        let unhandled = irqs.unhandled.value().unwrap();
        assert_eq!(unhandled.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [41]);
    }

    #[test]
    fn absent_and_malformed() {
        let of = |root: Root| read_interrupts(&root, &root.read_text("/proc/interrupts"));
        assert!(of(Tree::new(&[]).root()).is_absent());
        let odd = of(Tree::new(&[("proc/interrupts", "no header\n")]).root());
        assert!(odd.why_unknown().unwrap().contains("no header"));
    }
}

#[cfg(test)]
mod irqbalance_tests {
    use super::*;
    use crate::reading::ReadingState;
    use crate::testing::Tree;

    const INIT: (&str, &str) = ("proc/1/stat", STAT);
    const STAT: &str = "1 (irqbalance) S 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

    fn reading(files: &[(&str, &str)]) -> Reading<Irqbalance> {
        let tree = Tree::new(files);
        let root = tree.root();
        read_irqbalance(&root, &TaskScan::read(&root))
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
        let balance = read_irqbalance(&root, &TaskScan::read(&root));
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
        assert!(matches!(odd.state, ReadingState::Malformed { .. }));
        assert_eq!(odd.path, "/etc/default/irqbalance");
        let refused = reading(&[INIT, ("etc/default/irqbalance/x", "")]);
        assert!(matches!(refused.state, ReadingState::Denied { .. }));
    }
}
