//! Parameters that the next boot gets: a change made at the prompt of the boot loader is gone with
//! the next boot, one made in a file is not there yet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kernel::CommandLine;
use crate::{Reading, Root, boot};

/// Parameters that can change latency. Of the next boot no other is kept.
pub const PARAMETERS: &[&str] = &[
    "acpi_irq_nobalance",
    "amd_iommu",
    "amd_pstate",
    "audit",
    "clocksource",
    "cpufreq.default_governor",
    "cpuidle.off",
    "default_hugepagesz",
    "efi",
    "highres",
    "hugepages",
    "hugepagesz",
    "idle",
    "intel_idle.max_cstate",
    "intel_iommu",
    "intel_pstate",
    "iommu",
    "iommu.passthrough",
    "iommu.strict",
    "irqaffinity",
    "isolcpus",
    "kfence.sample_interval",
    "kthread_cpus",
    "mce",
    "mitigations",
    "nmi_watchdog",
    "nohz",
    "nohz_full",
    "nosmt",
    "nosoftlockup",
    "nowatchdog",
    "numa_balancing",
    "pcie_aspm",
    "preempt",
    "processor.max_cstate",
    "rcu_nocb_poll",
    "rcu_nocbs",
    "rcupdate.rcu_expedited",
    "rcupdate.rcu_normal",
    "rcupdate.rcu_normal_after_boot",
    "rcutree.kthread_prio",
    "rcutree.use_softirq",
    "rt_group_sched",
    "sched_tick_max_deferment",
    "skew_tick",
    "split_lock_detect",
    "threadirqs",
    "transparent_hugepage",
    "tsc",
    "workqueue.unbound_cpus",
];

/// What the running entry and others are written in, in the order of reading.
const GRUB: &[&str] = &["/boot/grub/grub.cfg", "/boot/grub2/grub.cfg"];

const GRUB_ENV: &[&str] = &["/boot/grub2/grubenv", "/boot/grub/grubenv"];

const ENTRIES: &[&str] =
    &["/boot/loader/entries", "/efi/loader/entries", "/boot/efi/loader/entries"];

const RASPBERRY: &[&str] = &["/boot/firmware/cmdline.txt", "/boot/cmdline.txt"];

const EXTLINUX: &[&str] = &["/boot/extlinux/extlinux.conf"];

/// What grub.cfg is made of.
const GRUB_DEFAULT: &str = "/etc/default/grub";

/// Parameters of the boot entry of the running kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NextBoot {
    /// Whether the file is what an entry is made of, so that it counts once that was done
    /// (`update-grub`).
    pub is_source: bool,
    /// Those of [`PARAMETERS`] that it gives, in order, as written.
    pub parameters: Vec<String>,
}

/// Those of a command line that can change latency, as written, each once.
pub fn relevant(line: &CommandLine) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for parameter in &line.parameters {
        let key = parameter.key.replace('-', "_");
        if !PARAMETERS.contains(&key.as_str()) {
            continue;
        }
        let word = match &parameter.value {
            Some(value) => format!("{key}={value}"),
            None => key,
        };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

impl NextBoot {
    /// Reads our entry where it is the default, else that of the running kernel from the first
    /// boot loader that has one.
    pub(super) fn read(root: &Root, release: &Reading<String>) -> Reading<Self> {
        let Some(release) = release.value() else {
            return release.clone().and_then(|path, _| Reading::absent(path));
        };
        if let Some(found) = of_ours(root) {
            return found;
        }
        let mut found = of_entries(root, release);
        for path in GRUB {
            found =
                or_next(found, || root.read_text(path).and_then(|p, t| of_grub(p, &t, release)));
        }
        for path in RASPBERRY {
            found = or_next(found, || root.read_text(path).map(|text| entry(&text)));
        }
        for path in EXTLINUX {
            found = or_next(found, || root.read_text(path).and_then(of_extlinux));
        }
        or_next(found, || of_grub_default(root))
    }
}

/// Our entry, once `tune confirm` has made it the default: it boots next, whatever the entries of
/// the distribution say. A capture holds too little of a boot loader's files to know, and none are
/// taken into one for it.
fn of_ours(root: &Root) -> Option<Reading<NextBoot>> {
    if root.is_capture() || root.is_recorded() {
        return None;
    }
    // What cannot be read here is reported where the distribution's entries are read.
    let loader = boot::detect(root).ok()?;
    if loader.entry_state(root).ok()? != boot::OwnEntryState::Default {
        return None;
    }
    let ours = loader.entry(root).ok()??;
    Some(Reading::known(ours.file, entry(&ours.cmdline)))
}

/// The next place where this one is not there. A refusal is the answer: what is behind it may be
/// what boots.
fn or_next(
    found: Reading<NextBoot>,
    next: impl FnOnce() -> Reading<NextBoot>,
) -> Reading<NextBoot> {
    if found.is_absent() { found.or_else(next) } else { found }
}

fn entry(line: &str) -> NextBoot {
    NextBoot { is_source: false, parameters: relevant(&CommandLine::parse(line)) }
}

/// The rest of a line that begins with a word, whatever its case.
fn after<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let line = line.trim();
    let (first, rest) = line.split_once(char::is_whitespace)?;
    first.eq_ignore_ascii_case(word).then(|| rest.trim())
}

/// Boot Loader Specification: one file for each entry, with `linux` and `options`.
fn of_entries(root: &Root, release: &str) -> Reading<NextBoot> {
    for folder in ENTRIES {
        let listed = root.list_dir(folder);
        if listed.value().is_none() && !listed.is_absent() {
            return listed.and_then(|path, _| Reading::absent(path));
        }
        for name in listed.value().into_iter().flatten().filter(|name| name.ends_with(".conf")) {
            let path = format!("{folder}/{name}");
            let text = root.read_text(&path);
            let Some(text) = text.value() else {
                return text.and_then(|path, _| Reading::absent(path));
            };
            let is_running = text.lines().any(|line| {
                let linux = after(line, "linux").is_some_and(|path| path.contains(release));
                linux || after(line, "version").is_some_and(|version| version == release)
            });
            if !is_running {
                continue;
            }
            let options: Vec<&str> =
                text.lines().filter_map(|line| after(line, "options")).collect();
            return Reading::known(path, entry(&expanded(root, &options.join(" "))));
        }
    }
    Reading::absent(ENTRIES.join(", "))
}

/// `$kernelopts` and `$tuned_params` are in grubenv.
fn expanded(root: &Root, line: &str) -> String {
    if !line.contains('$') {
        return line.to_owned();
    }
    let environment: Vec<String> =
        GRUB_ENV.iter().filter_map(|path| root.read_text(path).value().cloned()).collect();
    let value = |name: &str| {
        let lines = environment.iter().flat_map(|text| text.lines());
        lines.filter_map(|line| line.split_once('=')).find(|(key, _)| *key == name)
    };
    let word = |word| match str::strip_prefix(word, '$') {
        Some(name) => value(name).map_or("", |(_, value)| value.trim_matches('"')).to_owned(),
        None => word.to_owned(),
    };
    line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

/// The first entry of the running kernel that is no rescue: later ones are that of its submenu.
fn of_grub(path: String, text: &str, release: &str) -> Reading<NextBoot> {
    let file = format!("vmlinuz-{release}");
    let line = text
        .lines()
        .filter_map(|line| after(line, "linux").or_else(|| after(line, "linuxefi")))
        .find(|line| {
            let image = line.split_whitespace().next().unwrap_or_default();
            let is_rescue = line.split_whitespace().any(|word| {
                ["single", "recovery", "rescue", "emergency"].contains(&word)
                    || word.starts_with("systemd.unit=")
            });
            image.ends_with(&file) && !is_rescue
        });
    match line {
        Some(line) => Reading::known(path, entry(line)),
        None => Reading::absent(path),
    }
}

/// The label that `default` names, else the first.
fn of_extlinux(path: String, text: String) -> Reading<NextBoot> {
    let default = text.lines().find_map(|line| after(line, "default"));
    let mut is_wanted = default.is_none();
    for line in text.lines() {
        if let Some(label) = after(line, "label") {
            is_wanted = default.is_none_or(|default| default == label);
        }
        if let Some(line) = after(line, "append").filter(|_| is_wanted) {
            return Reading::known(path, entry(line));
        }
    }
    Reading::malformed(path, &text, "a label with an append line")
}

/// What update-grub makes entries of: two variables that files of grub.d may set again. They are
/// shell; more than text and variables cannot be evaluated.
fn of_grub_default(root: &Root) -> Reading<NextBoot> {
    let folder = "/etc/default/grub.d";
    let names = root.list_dir(folder);
    let more = names.value().into_iter().flatten().filter(|name| name.ends_with(".cfg"));
    let first = root.read_text(GRUB_DEFAULT);
    if first.value().is_none() {
        return first.and_then(|path, _| Reading::absent(path));
    }
    let mut lines = [String::new(), String::new()];
    let texts = more.map(|name| root.read_text(&format!("{folder}/{name}")));
    for text in std::iter::once(first).chain(texts) {
        for line in text.value().into_iter().flat_map(|text| text.lines()) {
            let line = line.trim();
            if !line.starts_with("GRUB_CMDLINE_LINUX") {
                continue;
            }
            let Some((name, value)) = line.split_once('=') else { continue };
            let value = value.trim().trim_matches(['"', '\'']);
            if value.contains(['`', '\\']) || value.contains("$(") {
                return Reading::malformed(&text.path, line, "text and variables");
            }
            let at = match name.trim_end_matches('+') {
                "GRUB_CMDLINE_LINUX" => 0,
                "GRUB_CMDLINE_LINUX_DEFAULT" => 1,
                _ => continue,
            };
            let mut value = value.to_owned();
            for (name, known) in [("GRUB_CMDLINE_LINUX_DEFAULT", 1), ("GRUB_CMDLINE_LINUX", 0)] {
                value = value.replace(&format!("${{{name}}}"), &lines[known]);
                value = value.replace(&format!("${name}"), &lines[known]);
            }
            lines[at] = if name.ends_with('+') { format!("{}{value}", lines[at]) } else { value };
        }
    }
    let next = NextBoot { is_source: true, ..entry(&lines.join(" ")) };
    Reading::known(GRUB_DEFAULT, next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn read(files: &[(&str, &str)]) -> Reading<NextBoot> {
        let release = Reading::known("r", "6.1.0-rt".to_owned());
        NextBoot::read(&Tree::new(files).root(), &release)
    }

    fn parameters(files: &[(&str, &str)]) -> Vec<String> {
        read(files).value().unwrap().parameters.clone()
    }

    #[test]
    fn grub_has_the_entry_of_the_running_kernel() {
        let grub = "menuentry 'x' {\n\tlinux\t/boot/vmlinuz-6.1.0 root=/dev/sda1 isolcpus=9\n}\n\
                    menuentry 'r' {\n\tlinux /boot/vmlinuz-6.1.0-rt root=UUID=1 single\n}\n\
                    menuentry 'y' {\n\tlinux /vmlinuz-6.1.0-rt ro quiet isolcpus=2-3 skew-tick=1\n}\n";
        let files = [("boot/grub/grub.cfg", grub)];
        assert_eq!(parameters(&files), ["isolcpus=2-3", "skew_tick=1"]);
        assert_eq!(read(&files).path, "/boot/grub/grub.cfg");
        assert!(read(&[("boot/grub/grub.cfg", "set x=1\n")]).is_absent());
    }

    #[test]
    fn entries_with_variables_come_first() {
        let conf =
            "title x\nversion 6.1.0-rt\nlinux /vmlinuz\noptions root=/dev/sda1 $tuned_params\n";
        let files = [
            ("boot/loader/entries/a.conf", "linux /vmlinuz-5.0\noptions isolcpus=9\n"),
            ("boot/loader/entries/b.conf", conf),
            (
                "boot/grub2/grubenv",
                "# GRUB Environment Block\ntuned_params=skew_tick=1 tsc=reliable\n",
            ),
        ];
        assert_eq!(parameters(&files), ["skew_tick=1", "tsc=reliable"]);
    }

    #[test]
    fn boards_have_one_line_or_labels() {
        let line = "console=tty1 root=/dev/mmcblk0p2 isolcpus=3 isolcpus=3\n";
        assert_eq!(parameters(&[("boot/firmware/cmdline.txt", line)]), ["isolcpus=3"]);
        let labels = "DEFAULT b\nLABEL a\n  APPEND isolcpus=1\nLABEL b\n  APPEND isolcpus=2\n";
        assert_eq!(parameters(&[("boot/extlinux/extlinux.conf", labels)]), ["isolcpus=2"]);
        assert!(read(&[("boot/extlinux/extlinux.conf", "x")]).why_unknown().is_some());
    }

    #[test]
    fn the_source_of_grub_is_asked_last() {
        let files = [
            (
                "etc/default/grub",
                "GRUB_CMDLINE_LINUX=\"isolcpus=2\"\nGRUB_CMDLINE_LINUX_DEFAULT='quiet'\n",
            ),
            ("etc/default/grub.d/x.cfg", "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX nosmt\"\n"),
        ];
        let next = read(&files);
        assert!(next.value().unwrap().is_source);
        assert_eq!(next.value().unwrap().parameters, ["isolcpus=2", "nosmt"]);
        let shell = [("etc/default/grub", "GRUB_CMDLINE_LINUX=$(cat x)\n")];
        assert!(read(&shell).why_unknown().unwrap().contains("variables"));
        assert!(read(&[]).is_absent());
    }
}
